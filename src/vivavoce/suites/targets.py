"""From the targets of a suite to the systems under test, one for each model handle, and to their tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vivavoce import targets as kinds  # each is imported when it is built
from vivavoce.errors import UsageError, VivavoceError
from vivavoce.plugins import lazy, load_object
from vivavoce.records.trajectory import declare_visible_calls
from vivavoce.run.experiment import Limits
from vivavoce.samples.rows import SampleCount
from vivavoce.samples.sample import Sample
from vivavoce.settings import from_environment
from vivavoce.suites.document import KeyPath
from vivavoce.suites.load import Suite
from vivavoce.suites.target_spec import (
    A2ATargetSpec,
    AnyTargetSpec,
    FunctionTargetSpec,
    HttpTargetSpec,
    LettaCodeTargetSpec,
    LettaTargetSpec,
    McpSpec,
    McpTargetSpec,
    OpenAITargetSpec,
    PluginTargetSpec,
    RecordingTargetSpec,
    TargetSpec,
    TerminalTargetSpec,
    WebSocketTargetSpec,
    target_kinds,
)
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Target, cannot_return, gets_conversation, knows_users, lacks_history
from vivavoce.tools.answer import Canned, FunctionForm, Handler, HandlerForm, RecordingForm
from vivavoce.user_code import foreign_code
from vivavoce.validation import read_options
from vivavoce.wire.http import Limits as WireLimits
from vivavoce.wire.http import is_loopback

if TYPE_CHECKING:
    from vivavoce.records.recording import Recording
    from vivavoce.targets.letta_server import LettaAccess
    from vivavoce.tools.mcp import McpServer
    from vivavoce.tools.recordings import Replay
    from vivavoce.tools.toolbox import FunctionTool, Toolbox


def open_recording(suite: Suite, path: str) -> Recording:
    """Return the recording at a path of a suite.

    Raises:
        UsageError: it cannot be read, is empty or cut off, or a line is broken.
    """
    place = suite.base / path
    try:
        status = place.stat()
    except OSError:
        return _read_recording(place)
    return _read(place, status.st_mtime_ns, status.st_size)


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
    own = _by_name(definitions)
    handlers = {
        name: _handler(name, form, own.get(name), spec.timeout, suite) for name, form in (spec.handlers or {}).items()
    }
    toolbox: type[Toolbox] = lazy("vivavoce.tools.toolbox:Toolbox")
    return toolbox(
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
    recording = None if spec is None else open_recording(suite, spec.path)
    if spec is None or recording is None or not recording.calls:
        return None
    return lazy("vivavoce.tools.recordings:Replay")(recording, frozenset(spec.live))


def _by_name(definitions: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return lazy("vivavoce.tools.toolbox:by_name")(definitions)


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
    tools_by_name, defined = _by_name(spec.tools or ()), spec.tools or ()
    functions = [name for name, form in (spec.handlers or {}).items() if isinstance(form, FunctionForm)]
    return None if len(tools_by_name) < len(defined) else list(dict.fromkeys([*tools_by_name, *functions]))


def known_tools(suite: Suite) -> list[str]:
    """Return the names of the tools of the targets, none if some target may have others."""
    all_names: dict[str, None] = {}
    for target in suite.spec.all_targets.values():
        names = offered_names(target)
        if not names:
            return []
        all_names |= dict.fromkeys(names)
    return list(all_names)


def row_check(suite: Suite) -> Callable[[Sample], None]:
    """Return what checks that a row asks of the tools only what the target can do.

    It raises `UsageError`, whose text begins with the path in the row.
    """
    specs = list(suite.spec.all_targets.values())
    with_tools = [(offered_names(spec), spec) for spec in specs if isinstance(spec, OpenAITargetSpec)]

    def check(sample: Sample) -> None:
        for offered, spec in with_tools:
            lazy("vivavoce.tools.toolbox:check_row")(
                sample.tool_results, sample.approvals, offered, spec.needs_approval or (), spec.tools or ()
            )
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
        tool: type[FunctionTool] = lazy("vivavoce.tools.toolbox:FunctionTool")
        return tool(name, function, definition, form.timeout or timeout)
    if isinstance(form, RecordingForm):
        recording = open_recording(suite, form.recordings)
        return lazy("vivavoce.tools.recordings:Recordings")(recording.calls, recording.place)
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


@dataclass(frozen=True, slots=True)
class _Context:
    suite: Suite
    limits: WireLimits
    keys_needed: bool

    def key(self, variable: str, base_url: str) -> str | None:
        """Return an API key from the environment; a local address needs none."""
        key = os.environ.get(variable) or None
        if key is None and self.keys_needed and not is_loopback(base_url):
            raise UsageError(f"{base_url} needs a key: set the environment variable {variable}")
        return key

    def load(self, reference: str | None) -> Any:
        return None if reference is None else load_object(reference, self.suite.base)

    def file(self, path: str | None) -> Path | None:
        return None if path is None else self.suite.base / path


def build_targets(suite: Suite, concurrency: int, *, keys_needed: bool = True) -> list[Target]:
    """Return the systems under test of a suite; nothing is sent yet. A check does not need their API keys.

    Raises:
        UsageError: a file, a key or a name is missing; the problem names its place in the suite.
    """
    _check_names(suite)
    return [
        target
        for at, spec in suite.spec.all_targets.items()
        for target in _build(at, spec, _Context(suite, _connections(spec, concurrency), keys_needed))
    ]


def check_rows(suite: Suite, targets: Sequence[Target], rows: SampleCount) -> None:
    """Check that every target can hold the conversations of rows with several sessions, and of rows with a history.

    Raises:
        UsageError: a target is not told who speaks, or cannot be given a history.
    """
    problems: list[str] = []
    if rows.returning:
        several = f"{rows.returning} row{'s have' if rows.returning != 1 else ' has'} several sessions"
        problems += (f"{several}, and {cannot_return(target.name)}" for target in targets if not knows_users(target))
    if rows.continued:
        continued_rows = f"{rows.continued} row{'s have' if rows.continued != 1 else ' has'} a 'history'"
        problems += (
            f"{continued_rows}, and {lacks_history(target.name)}" for target in targets if not gets_conversation(target)
        )
    if problems:
        raise UsageError(*(suite.document.problem(("dataset",), problem) for problem in problems))


def target_limits(suite: Suite, concurrency: int) -> list[Limits]:
    """Return the limits of each target, in the order of `build_targets`."""
    return [
        Limits(at_most(spec, concurrency), None if isinstance(spec, _TIMED) else spec.timeout, spec.max_retries)
        for spec in suite.spec.all_targets.values()
        for _ in spec.names_and_models
    ]


def has_client(suite: Suite) -> bool:
    """Return whether a target of a suite has a client of a Letta server."""
    return any(
        isinstance(spec, LettaTargetSpec) or (isinstance(spec, LettaCodeTargetSpec) and spec.backend != "local")
        for spec in suite.spec.all_targets.values()
    )


def at_most(spec: TargetSpec, concurrency: int) -> int:
    """Return how many conversations a target has at a time, where the suite has `concurrency`."""
    return min(concurrency, spec.max_concurrent or concurrency)


def _connections(spec: TargetSpec, concurrency: int) -> WireLimits:
    return WireLimits(concurrency=at_most(spec, concurrency), timeout=spec.timeout)


def _check_names(suite: Suite) -> None:
    """Check that every target has a name of its own.

    Raises:
        UsageError: two have the same.
    """
    seen: dict[str, KeyPath] = {}
    specs = suite.spec.all_targets
    for at, spec in specs.items():
        for name, _ in spec.names_and_models:
            other = seen.setdefault(name, at)
            if other != at:
                raise UsageError(suite.document.problem(at, _same_name(name, other, specs[other], spec)))
        names = [name for name, _ in spec.names_and_models]
        if twice := next((model for name, model in spec.names_and_models if names.count(name) > 1), None):
            raise UsageError(suite.document.problem((*at, "model_handles"), f"'{twice}' is listed twice"))


def _same_name(name: str, at: KeyPath, first: TargetSpec, second: TargetSpec) -> str:
    place = ".".join(map(str, at))
    fields, other = (dict(spec) for spec in (first, second))
    differing = [field for field in {**fields, **other} if fields.get(field) != other.get(field)]
    if not differing:
        return f"is the same target as {place}; remove one of them"
    unlike = f", and differs in {', '.join(sorted(differing))}" if type(first) is type(second) else ""
    return f"is called '{name}', as {place} is{unlike}; give each a name: of its own"


def _build(at: KeyPath, spec: TargetSpec, context: _Context) -> list[Target]:
    document = context.suite.document
    try:
        targets = _BUILDERS[type(spec)](spec, context)
    except UsageError as error:
        raise UsageError(*document.problems_at(at, error)) from error
    for target in targets:
        declare_visible_calls(target, spec.calls or spec.default_calls)
    return targets


def _function(spec: FunctionTargetSpec, context: _Context) -> list[Target]:
    return [as_target(context.load(spec.function), name, stream=bool(spec.stream)) for name, _ in spec.names_and_models]


def _openai(spec: OpenAITargetSpec, context: _Context) -> list[Target]:
    base_url = from_environment(spec.base_url, "base_url")
    settings = from_environment(spec.settings, "settings")
    toolbox = toolbox_of(spec, context.suite)
    return [
        kinds.OpenAITarget(
            name,
            base_url,
            handle or "",
            api_key=context.key(spec.api_key_env, base_url),
            system_prompt=spec.system_prompt,
            settings=settings,
            tools=toolbox,
            limits=context.limits,
        )
        for name, handle in spec.names_and_models
    ]


def _http(spec: HttpTargetSpec, context: _Context) -> list[Target]:
    return [
        kinds.HttpTarget(
            name,
            spec.url,
            body=spec.body,
            reply=spec.reply,
            method=spec.method,
            headers=spec.headers,
            session=spec.session,
            limits=context.limits,
        )
        for name, _ in spec.names_and_models
    ]


def _websocket(spec: WebSocketTargetSpec, context: _Context) -> list[Target]:
    del context
    frames = lazy("vivavoce.targets.websocket:Frames")
    return [
        kinds.WebSocketTarget(
            name,
            spec.url,
            message=spec.message,
            first=spec.first,
            frames=frames(spec.reply, spec.piece, spec.end, spec.error, spec.session),
            headers=spec.headers,
            timeout=spec.timeout,
        )
        for name, _ in spec.names_and_models
    ]


def _a2a(spec: A2ATargetSpec, context: _Context) -> list[Target]:
    return [
        kinds.A2ATarget(name, spec.url, headers=spec.headers, limits=context.limits)
        for name, _ in spec.names_and_models
    ]


def _mcp(spec: McpTargetSpec, context: _Context) -> list[Target]:
    server = mcp_server(spec, spec.timeout, context.suite)
    return [kinds.McpTarget(name, server, spec.tool, arguments=spec.arguments) for name, _ in spec.names_and_models]


def _terminal(spec: TerminalTargetSpec, context: _Context) -> list[Target]:
    del context
    return [kinds.TerminalTarget(name) for name, _ in spec.names_and_models]


def _recording(spec: RecordingTargetSpec, context: _Context) -> list[Target]:
    recording_target = lazy("vivavoce.targets.recording:RecordingTarget")
    return [
        recording_target(open_recording(context.suite, spec.path), name, spec.recorded_target)
        for name, _ in spec.names_and_models
    ]


def _letta(spec: LettaTargetSpec, context: _Context) -> list[Target]:
    source = lazy("vivavoce.targets.letta:AgentSource")(
        spec.agent_id, context.file(spec.agent_file), context.load(spec.agent_script)
    )
    access = _access(spec)
    if not access.api_key:
        context.key("LETTA_API_KEY", access.base_url)
    return [
        kinds.LettaTarget(source, access, name=name, model=handle, cleanup=spec.cleanup)
        for name, handle in spec.names_and_models
    ]


def _letta_code(spec: LettaCodeTargetSpec, context: _Context) -> list[Target]:
    options = lazy("vivavoce.targets.letta_code:LettaCodeOptions")(
        command=spec.command,
        backend=spec.backend,
        flags=spec.flags,
        permission_mode=spec.permission_mode,
        directory=context.suite.base,
        working_dir=spec.working_dir,
        memory_dir=context.file(spec.memory_dir),
    )
    access = None
    if spec.backend != "local":
        access = _access(spec)
        if not access.api_key:
            context.key("LETTA_API_KEY", access.base_url)
    factory = context.load(spec.agent_script)
    return [
        kinds.LettaCodeTarget(options, name=name, model=handle, access=access, factory=factory)
        for name, handle in spec.names_and_models
    ]


def _access(spec: LettaTargetSpec | LettaCodeTargetSpec) -> LettaAccess:
    key = None if spec.api_key is None else from_environment(spec.api_key.get_secret_value(), "api_key")
    return lazy("vivavoce.targets.letta_server:LettaAccess").find(
        from_environment(spec.base_url, "base_url"), key, spec.project_id
    )


def _plugin(spec: PluginTargetSpec, context: _Context) -> list[Target]:
    del context
    label = f"the target kind '{spec.kind}'"
    make = target_kinds.get(spec.kind)
    options = read_options(make, from_environment(spec.config, "config"), label, skipped=1)
    targets: list[Target] = []
    for name, _ in spec.names_and_models:
        try:
            with foreign_code():
                target: object = make(name, **options)
        except VivavoceError:
            raise
        except Exception as error:
            text = f"{label} of a plugin failed: {type(error).__name__}: {' '.join(str(error).split())}"
            raise UsageError(text) from error
        targets.append(as_target(target, name))
    return targets


_Builder = Callable[[Any, _Context], list[Target]]
_BUILDERS: dict[type[TargetSpec], _Builder] = {
    FunctionTargetSpec: _function,
    OpenAITargetSpec: _openai,
    HttpTargetSpec: _http,
    WebSocketTargetSpec: _websocket,
    A2ATargetSpec: _a2a,
    McpTargetSpec: _mcp,
    TerminalTargetSpec: _terminal,
    RecordingTargetSpec: _recording,
    LettaTargetSpec: _letta,
    LettaCodeTargetSpec: _letta_code,
    PluginTargetSpec: _plugin,
}

_TIMED = (OpenAITargetSpec, HttpTargetSpec, WebSocketTargetSpec)
"""Targets that keep to `timeout` themselves; nobody else limits the time of their calls."""
