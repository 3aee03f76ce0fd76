"""Changing what people say of a run, with an entry in the audit log."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from vivavoce.errors import NotFound
from vivavoce.records.label import Remarks
from vivavoce.store.access.audit import note
from vivavoce.store.browse.status import tagged
from vivavoce.store.database.schema import runs


def remark(connection: Connection, run_id: str, change: Remarks, actor: str) -> None:
    """Change the title, the notes or the tags of a run; the caller commits.

    Raises:
        NotFound: there is no run of that id.
    """
    r = runs.c
    found = connection.execute(select(r.title, r.notes, r.tags).where(r.id == run_id)).first()
    if found is None:
        raise NotFound("run", run_id)
    given = change.model_dump(exclude_unset=True)
    values = {name: given[name] or None for name in ("title", "notes") if name in given}
    if "tags" in given:
        values["tags"] = "".join(map(tagged, given["tags"] or ())) or None
    changed = {name: value for name, value in values.items() if value != getattr(found, name)}
    if changed:
        connection.execute(update(runs).where(r.id == run_id).values(changed))
        note(connection, actor, "run.remark", run_id, {name: given[name] or None for name in changed})
