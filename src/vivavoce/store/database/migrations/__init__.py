"""The steps by which the tables came to be what they are: which of them a store lacks, and running them.

A step is a module named by its version, such as `v1001`, whose `upgrade` changes the tables through alembic's `op`. A
store of version 1001 or above lacks the later ones in `released`. One from before the first release lacks the rest of
`before_release`; then it has the tables of 1001, and goes on from there.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, text

from vivavoce.plugins import lazy

FIRST_RELEASE = "1001"
"""The schema of the first release; a version is ordered as text."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the tables: the version that it leads to, what it adds, and the change."""

    version: str
    title: str
    upgrade: Callable[[], None]


def steps_after(version: str) -> list[Step]:
    """Return the steps that a store of a version lacks, oldest first."""
    released = [step for step in released_steps() if step.version > version]
    if version >= FIRST_RELEASE:
        return released
    first, *later = released
    earlier = [step for step in steps_before_release() if step.version > version]
    return [*earlier, replace(first, upgrade=_keep_tables), *later]


def steps_before_release() -> list[Step]:
    """Return the steps of stores that were made before the first release, oldest first."""
    return list(_steps_in("before_release"))


def released_steps() -> list[Step]:
    """Return the steps of released schemas, oldest first."""
    return list(_steps_in("released"))


def run_steps(connection: Connection, steps: Sequence[Step]) -> None:
    """Run some steps inside the transaction of the caller, and note the version that each leads to."""
    from alembic.operations import Operations  # takes a quarter of a second to import
    from alembic.runtime.migration import MigrationContext

    with Operations.context(MigrationContext.configure(connection)):
        for step in steps:
            step.upgrade()
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": step.version})


def _steps_in(folder: str) -> Iterator[Step]:
    for name in sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / folder)])):
        module = f"{__name__}.{folder}.{name}"
        title = str(lazy(f"{module}:__doc__")).splitlines()[0].rstrip(".")
        yield Step(name[1:5], title, lazy(f"{module}:upgrade"))


def _keep_tables() -> None:
    """Leave the tables as they are: a store from before the release has them already."""
