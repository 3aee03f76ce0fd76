"""Fields of the samples of a run, by which conversations are grouped: the persona, and what metadata says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection, select

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.score import shorten
from vivavoce.store.database.schema import attempts, read_json
from vivavoce.store.store import Store

_METADATA = "metadata"
MAX_FIELDS = 12
"""Fields that are offered to group by."""


def field_path(name: str, others: Sequence[str] = ()) -> list[str]:
    """Return the keys on the way to a field; `others` are names that are as good.

    Raises:
        UsageError: it is neither `persona` nor one of `metadata`.
    """
    keys = name.split(".")
    if all(keys) and (keys == ["persona"] or (keys[0] == _METADATA and len(keys) > 1)):
        return keys
    known = [*others, "persona", f"{_METADATA}.NAME"]
    raise UsageError(f"no field '{shorten(name, 80)}'{did_you_mean(name, known)}")


def fields_of(connection: Connection, run_id: str, name: str) -> dict[str, str]:
    """Return a field of the samples of a run that have it, as text.

    Raises:
        UsageError: no sample has it.
    """
    first, *rest = field_path(name)
    a = attempts.c
    query = select(a.sample_id, a.sample).where(a.run_id == run_id, a.sample.contains(f'"{first}"'))
    texts: dict[str, str] = {}
    known: set[str] = set()
    for row in connection.execute(query):
        if row.sample_id in texts:
            continue
        value: object = read_json(row.sample).get(first)
        known |= {f"{first}.{key}" for key in _object(value)} if rest else set()
        for key in rest:
            value = _object(value).get(key)
        if (text := _text(value)) is not None:
            texts[row.sample_id] = text
    if not texts:
        raise UsageError(f"no sample has {shorten(name, 80)}{did_you_mean(name, known)}")
    return texts


def fields_known(store: Store, run_id: str) -> list[str]:
    """Return the fields of the first sample of a run that are text, a number, true or false, up to `MAX_FIELDS`.

    Raises:
        StoreError: the store cannot be read.
    """
    a = attempts.c
    first = select(a.sample).where(a.run_id == run_id).order_by(a.position, a.id).limit(1)
    with store.database.connected() as connection:
        sample = _object(read_json(connection.execute(first).scalar() or "{}"))
    entries = [("persona", sample.get("persona"))]
    entries += [
        (f"{_METADATA}.{key}", value) for key, value in _object(sample.get(_METADATA)).items() if "." not in key
    ]
    return [name for name, value in entries if _text(value) is not None][:MAX_FIELDS]


def cases_of(connection: Connection, run_id: str, name: str) -> dict[str, str]:
    """Return the case of each sample that is a variant of one, by a field; its name is the id of no sample.

    Raises:
        UsageError: no sample has the field, or no two have the same value of it.
    """
    field_values = fields_of(connection, run_id, name)
    if len(set(field_values.values())) == len(field_values):
        raise UsageError(f"no two samples have the same {shorten(name, 80)}, so there are no pairs to compare")
    return {sample: f"{value}\0" for sample, value in field_values.items()}


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """Return a field as the name of a group; a persona that is described has the name in it."""
    if isinstance(value, dict):
        value = _object(cast("object", value)).get("name")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None
