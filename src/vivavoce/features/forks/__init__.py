"""Forks: continue a stored conversation from one of its turns, and find the turn at which it went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vivavoce.extensions import Command, RunDescription, hookimpl
from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vivavoce.extensions import Page, PageSection
    from vivavoce.records.run import AttemptKey, Listener, Run
    from vivavoce.run.experiment_run import ExperimentRun
    from vivavoce.run.options import RunOptions
    from vivavoce.store.store import Store

FEATURE = "vivavoce.features.forks"


@hookimpl
def register_commands() -> Mapping[str, Command]:
    """Add `viva fork`."""
    line = "Go on from a turn of a conversation, to see where it broke."
    return {"fork": Command(line, f"{FEATURE}.command:command", after="show")}


@hookimpl
def register_routes() -> list[str]:
    """Add the page of a fork, and its data."""
    return [f"{FEATURE}.api:router", f"{FEATURE}.page:router"]


@hookimpl
def register_page_files() -> Path:
    """Add the template and the style of the page."""
    return Path(__file__).parent


@hookimpl
def describe_run(run: Run) -> RunDescription | None:
    """Describe a fork by the conversation and the turn that it continues."""
    fork = lazy(f"{FEATURE}.records:fork_of")(run)
    return fork and RunDescription(fork.words, f"fork that conversation again with: viva fork {fork.of}")


@hookimpl
def resume_run(
    run: Run, options: RunOptions, store: Store, listeners: Sequence[Listener], errors: bool
) -> ExperimentRun | None:
    """Continue an interrupted fork."""
    if lazy(f"{FEATURE}.records:fork_of")(run) is None:
        return None
    resume = lazy(f"{FEATURE}.experiment:resume_fork")
    return cast("ExperimentRun", resume(run, options, store=store, listeners=listeners, errors=errors))


@hookimpl
def run_report(store: Store, run: Run) -> list[RenderableType]:
    """Report what a fork shows."""
    if lazy(f"{FEATURE}.records:fork_of")(run) is None:
        return []
    return cast("list[RenderableType]", lazy(f"{FEATURE}.report:stored_fork_report")(store, run))


@hookimpl
def conversation_report(store: Store, run: Run, key: AttemptKey, options: Sequence[str]) -> list[str]:
    """Name the forks of a conversation."""
    return list(lazy(f"{FEATURE}.records:fork_lines")(store, run.id, key, options))


@hookimpl
def run_page_links(run: Run) -> list[Page]:
    """Link to the page of a fork."""
    return cast("list[Page]", lazy(f"{FEATURE}.page:links_of_run")(run))


@hookimpl
def conversation_page_sections(store: Store, run: Run, key: AttemptKey) -> list[PageSection]:
    """List the forks of a conversation, and the fork that it belongs to."""
    return cast("list[PageSection]", lazy(f"{FEATURE}.page:sections_of_conversation")(store, run, key))
