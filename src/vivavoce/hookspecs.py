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

from vivavoce.extensions import PROJECT, Command, Page, PageLine, PagePart, PageSection, RunDescription

if TYPE_CHECKING:
    from fastapi import Request
    from rich.console import RenderableType

    from vivavoce.cli.options import InParts
    from vivavoce.pacing.limits import Budget
    from vivavoce.records.run import AttemptKey, Grading, Listener, Outcome, Run
    from vivavoce.run.batches import BatchedJudges, Export
    from vivavoce.run.experiment_run import ExperimentRun
    from vivavoce.run.options import RunOptions
    from vivavoce.run.summary import Summary
    from vivavoce.server.pages.run import RunView
    from vivavoce.store.replies import ReplyStore
    from vivavoce.store.store import Store
    from vivavoce.suites.load import Suite
    from vivavoce.suites.plan import Sampler

hookspec = pluggy.HookspecMarker(PROJECT)


@hookspec
def register_commands() -> Mapping[str, Command]:  # pyright: ignore[reportReturnType]
    """Return commands of `viva` by their names."""


@hookspec
def register_formats() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to formats of conversations (`vivavoce.conversations.format.Format`) by their names."""


@hookspec
def register_targets() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to functions by the kinds of target that they make.

    A function takes the name of the target and, by name, the options that are in `config` of the suite. It returns a
    target, or a function that answers a message.
    """


@hookspec
def register_frameworks() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to frameworks of agents (`vivavoce.targets.framework.Framework`) by their names.

    They say which of their objects can be targets. Built-in frameworks are asked about an object first.
    """


@hookspec
def register_models() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to functions by the providers of which they open models.

    A function takes the name of the model without the provider, and those of the options of `open_model` that it names.
    It returns a model, or an object with `generate(prompt, schema=None)`.
    """


@hookspec
def register_metrics() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to classes of metrics by their names."""


@hookspec
def register_graders() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to grading functions by their names; metrics and graders share their names."""


@hookspec
def register_extractors() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to extractors by their names."""


@hookspec
def register_strategies() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to strategies of the tester by their names."""


@hookspec
def register_reward_composers() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to functions that compose the reward of a sample, by their names."""


@hookspec
def register_exporters() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to exporters by the names of their formats.

    An exporter is a function that takes a graded run and a text file to write to, or an
    `vivavoce.report.export.Exporter`, which also names the file extension and the content type. An exporter that
    writes a folder is a `FolderExporter`.
    """


@hookspec
def register_publishers() -> Mapping[str, str]:  # pyright: ignore[reportReturnType]
    """Return references to functions that send a run to a tool, by the names of the tools.

    A function takes a graded run, and returns what it did, in lines.
    """


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
def work_in_parts(
    suite: Suite, files: Sequence[str] | None, how: InParts, options: RunOptions, store: str | None, quiet: bool
) -> int | None:
    """Judge the conversations of `files` in parts, or run a suite in parts; return the exit code."""


@hookspec
def ask_in_batches(budget: Budget, replies: ReplyStore | None) -> BatchedJudges | None:
    """Return judges that are asked in batches, within a budget; a check has no `replies`."""


@hookspec
def export_requests(suite: Suite, judge: str, path: Path, store: Store, options: RunOptions) -> Export | None:
    """Write the requests about the recorded conversations of a suite to files for a batch service."""


@hookspec
def import_responses(path: Path, store: Store, judge: str) -> int | None:
    """Keep the answers of a batch service in a file as those of a judge; return how many there are."""


@hookspec
def open_sampler(size: int, by: Sequence[str], weight_by: str | None, base: Path) -> Sampler | None:
    """Return what draws `size` recorded conversations to judge, by what is named; files are relative to `base`."""


@hookspec
def sampling_report(summary: Summary) -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return lines that every report shows of a run whose conversations were drawn from more."""


@hookspec
def run_report(store: Store, run: Run) -> Iterable[RenderableType]:  # pyright: ignore[reportReturnType]
    """Return what `viva show RUN` prints above the results of a run."""


@hookspec
def conversation_report(store: Store, run: Run, key: AttemptKey, options: Sequence[str]) -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return lines that `viva show RUN/SAMPLE` prints below a conversation; `options` go into commands."""


@hookspec
def run_page_links(store: Store, run: Run, grading: str | None) -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return pages that the page of a run links to; `grading` is the chosen set of scores, None for the newest."""


@hookspec
def run_page_sections(store: Store, run: Run, grading: str | None) -> Iterable[PageSection]:  # pyright: ignore[reportReturnType]
    """Return sections that the page of a run shows above its samples; `grading` is the chosen set of scores."""


@hookspec
def suite_links(suite: str) -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return links to what there is about a suite, for the foot of pages of its runs."""


@hookspec
def comparison_link(a: str, b: str, target: str | None) -> str | None:
    """Return the address of a page that compares run b with the earlier run a, of one target where it is named."""


@hookspec
def run_list_parameters() -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return the parameters of the page of a run that `run_list_parts` reads; links to the list keep them."""


@hookspec
def run_list_parts(view: RunView, readable: bool) -> Iterable[PagePart]:  # pyright: ignore[reportReturnType]
    """Return what the page of a run shows above its list of samples; `readable`: its filter is well formed."""


@hookspec
def tag_finding(store: Store, grading: Grading) -> Iterable[str]:  # pyright: ignore[reportReturnType]
    """Return sentences that stand above the results by tag in a report."""


@hookspec
def page_tabs() -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return tabs that every page shows; the section of a page is the text of its tab in small letters."""


@hookspec
def run_page_lines(store: Store, grading: Grading) -> Iterable[PageLine]:  # pyright: ignore[reportReturnType]
    """Return lines that the page of a run shows below its results."""


@hookspec
def ways_to_label(run: str, grader: str) -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return links to label conversations of a run for the question of a grader."""


@hookspec
def label_links(grading: Grading, grader: str) -> Iterable[Page]:  # pyright: ignore[reportReturnType]
    """Return links that follow the line about the labels of a grader on the page of a run."""


@hookspec
def conversation_page_sections(store: Store, run: Run, key: AttemptKey) -> Iterable[PageSection]:  # pyright: ignore[reportReturnType]
    """Return sections that the page of a conversation shows above its turns."""


@hookspec
def conversation_page_parts(request: Request, run: Run, outcome: Outcome) -> Iterable[PagePart]:  # pyright: ignore[reportReturnType]
    """Return parts of the page of a conversation.

    Each template defines three macros: `head()` for the head of the page, `for_turn(values, turn)` for the notes on
    the turn with this index, and `after_scores(values, turns)` for what follows the scores.
    """
