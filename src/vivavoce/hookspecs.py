"""Everything that a plugin can add, built in or installed: one function per hook.

A plugin is a module (or an object) with functions of these names, marked with `@hookimpl`. It takes only the arguments
that it uses. An installed package names its plugin in the entry point group `vivavoce`:

    [project.entry-points.vivavoce]
    acme = "acme.vivavoce_plugin"

Hooks return references, `package.module:name`, wherever something is loaded only when it is used: a plugin module is
imported by every command, and what it refers to is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

from vivavoce.extensions import PROJECT, Command, Page, PageSection, RunDescription

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vivavoce.records.run import AttemptKey, Listener, Run
    from vivavoce.run.experiment_run import ExperimentRun
    from vivavoce.run.options import RunOptions
    from vivavoce.store.store import Store

hookspec = pluggy.HookspecMarker(PROJECT)


@hookspec
def register_commands() -> Mapping[str, Command]:  # pyright: ignore[reportReturnType]
    """Return commands of `viva` by their names."""


@hookspec
def register_routes() -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return references to FastAPI routers, of pages and of the API; the server adds their routes as they are."""


@hookspec
def register_page_files() -> Path:  # pyright: ignore[reportReturnType]
    """Return a folder with `templates` and, where pages need files, `static`; the core's own names come first."""


@hookspec
def describe_run(run: Run) -> RunDescription | None:
    """Return what a special kind of run is, None for a run that this plugin did not make."""


@hookspec
def resume_run(
    run: Run, options: RunOptions, store: Store, listeners: Sequence[Listener], errors: bool
) -> ExperimentRun | None:
    """Return an interrupted run that this plugin made, ready to continue; with `errors` its errors are retried."""


@hookspec
def run_report(store: Store, run: Run) -> Iterable[RenderableType]:  # pyright: ignore[reportReturnType]
    """Return what `viva show RUN` prints above the results of a run."""


@hookspec
def conversation_report(store: Store, run: Run, key: AttemptKey, options: Sequence[str]) -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return lines that `viva show RUN/SAMPLE` prints below a conversation; `options` go into commands."""


@hookspec
def run_page_links(run: Run, grading: str | None) -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return pages that the page of a run links to; `grading` is the chosen set of scores, None for the newest."""


@hookspec
def conversation_page_sections(store: Store, run: Run, key: AttemptKey) -> Iterable[PageSection]:  # pyright: ignore[reportReturnType]
    """Return sections of links that the page of a conversation shows above its turns."""
