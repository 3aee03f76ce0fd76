"""From a suite to the tools of its target, and to what its rows may say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vivavoce.errors import UsageError
from vivavoce.plugins import lazy, load_object
from vivavoce.samples.sample import Sample
from vivavoce.settings import from_environment
from vivavoce.suites.load import Suite
from vivavoce.suites.target_spec import (
    AnyTargetSpec,
    FunctionTargetSpec,
    McpSpec,
    OpenAITargetSpec,
    RecordingTargetSpec,
)
from vivavoce.tools.answer import Canned, FunctionForm, Handler, HandlerForm, RecordingForm
from vivavoce.tools.function import FunctionTool
from vivavoce.tools.toolbox import Toolbox, by_name, check_row

if TYPE_CHECKING:
    from vivavoce.records.recording import Recording
    from vivavoce.tools.mcp import McpServer
    from vivavoce.tools.recordings import Replay


def opened(suite: Suite, path: str) -> Recording:
    """Return the recording at a path of a suite.

    Raises:
        UsageError: it cannot be read, is empty or cut off, or a line is broken.
    """
    place = suite.base / path
    try:
        found = place.stat()
    except OSError:
        return _read_recording(place)
    return _read(place, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> Recording:
    """Return a recording, which is read once as long as its file is the same."""
    del changed, size
    return _read_recording(path)


def _read_recording(path: Path) -> Recording:
    return lazy("vivavoce.records.recording:read_recording")(path)


ABOUT_TOOLS = ("tool_results", "approvals", "state")
"""The fields of a row that are for a target with tools."""


def toolbox_of(spec: OpenAITargetSpec, suite: Suite) -> Toolbox:
    """Return the tools of a target.

    Raises:
        UsageError: a function or a file of a handler is missing, or a handler is for a tool that is not offered.
    """
    definitions = spec.tools or []
    own = by_name(definitions)
    handlers = {
        name: _handler(name, form, own.get(name), spec.timeout, suite) for name, form in (spec.handlers or {}).items()
    }
    return Toolbox(
        definitions,
        handlers,
        server=None if spec.mcp is None else mcp_server(spec.mcp, spec.timeout, suite),
        max_steps=spec.max_steps or 10,
        needs_approval=spec.needs_approval or (),
        approvals=spec.approvals,
        replay=_replay(suite),
    )


def _replay(suite: Suite) -> Replay | None:
    """Return the recording that answers the tools of a suite's targets, None where it has none with calls."""
    spec = suite.spec.recording
    recording = None if spec is None else opened(suite, spec.path)
    if spec is None or recording is None or not recording.calls:
        return None
    return lazy("vivavoce.tools.recordings:Replay")(recording, frozenset(spec.live))


def code_files(spec: AnyTargetSpec) -> list[str]:
    """Return the paths of the files of a target: its function, and what answers its tools."""
    if isinstance(spec, FunctionTargetSpec):
        return [spec.function.rpartition(":")[0]]
    if isinstance(spec, RecordingTargetSpec):
        return [spec.path]
    forms = spec.handlers if isinstance(spec, OpenAITargetSpec) else None
    files = [_file(form) for form in (forms or {}).values()]
    return [file for file in files if file is not None]


def offered_names(spec: AnyTargetSpec) -> list[str] | None:
    """Return the names of the tools of a target, None where they are not known before it runs."""
    if not isinstance(spec, OpenAITargetSpec) or spec.mcp is not None:
        return None
    named, defined = by_name(spec.tools or ()), spec.tools or ()
    functions = [name for name, form in (spec.handlers or {}).items() if isinstance(form, FunctionForm)]
    return None if len(named) < len(defined) else list(dict.fromkeys([*named, *functions]))


def known_tools(suite: Suite) -> list[str]:
    """Return the names of the tools of the targets, none if some target may have others."""
    found: dict[str, None] = {}
    for target in suite.spec.all_targets.values():
        names = offered_names(target)
        if not names:
            return []
        found |= dict.fromkeys(names)
    return list(found)


def row_check(suite: Suite) -> Callable[[Sample], None]:
    """Return what checks that a row asks of the tools only what the target can do.

    It raises `UsageError`, whose text begins with the path in the row.
    """
    specs = list(suite.spec.all_targets.values())
    with_tools = [(offered_names(spec), spec) for spec in specs if isinstance(spec, OpenAITargetSpec)]

    def check(sample: Sample) -> None:
        for offered, spec in with_tools:
            check_row(sample.tool_results, sample.approvals, offered, spec.needs_approval or (), spec.tools or ())
        if specs and not with_tools:
            _check_other(sample, specs)

    return check


def _check_other(sample: Sample, specs: Sequence[AnyTargetSpec]) -> None:
    """Check that a row asks for nothing of targets that have no tools of ours."""
    for name in ABOUT_TOOLS:
        takes_it = name == "state" and any(isinstance(spec, FunctionTargetSpec) for spec in specs)
        if getattr(sample, name) and not takes_it:
            kinds = "openai or function" if name == "state" else "openai"
            raise UsageError(f"{name}: is for a target of kind {kinds}; the target is of kind {specs[0].kind}")


def _handler(
    name: str, form: HandlerForm, definition: Mapping[str, Any] | None, timeout: float, suite: Suite
) -> Handler:
    if isinstance(form, FunctionForm):
        try:
            function = load_object(form.function, suite.base)
        except UsageError as error:
            problems = [p if p.file else f"handlers.{name}: {p.message}" for p in error.problems]
            raise UsageError(*problems) from error
        return FunctionTool(name, function, definition, form.timeout or timeout)
    if isinstance(form, RecordingForm):
        found = opened(suite, form.recordings)
        return lazy("vivavoce.tools.recordings:Recordings")(found.calls, found.place)
    return Canned(form, f"handlers.{name}")


def _file(form: HandlerForm) -> str | None:
    if isinstance(form, FunctionForm):
        return form.function.rpartition(":")[0]
    return form.recordings if isinstance(form, RecordingForm) else None


def mcp_server(spec: McpSpec, timeout: float, suite: Suite) -> McpServer:
    """Return the MCP server that is described; what it starts runs in the folder of the suite.

    Raises:
        MissingExtra: the package `mcp` is not installed.
        UsageError: an environment variable is not set.
    """
    url = None if spec.url is None else from_environment(spec.url, "mcp.url")
    headers = from_environment(spec.headers, "mcp.headers")
    command, env = from_environment(spec.command, "mcp.command"), from_environment(spec.env, "mcp.env")
    return lazy("vivavoce.tools.mcp:McpServer")(command, suite.base, env, url=url, headers=headers, timeout=timeout)
