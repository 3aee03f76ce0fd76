"""`LettaCodeTarget`: an agent of the Letta Code command line, one long-lived process for each conversation."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import uuid4

from vivavoce.errors import Fault, SuiteFault, TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.records.score import EVIDENCE_LIMIT, Usage, shorten
from vivavoce.records.trajectory import default_calls
from vivavoce.targets.letta_messages import Event, LettaTurn, UserContent, to_letta
from vivavoce.targets.letta_server import AgentFactory, LettaAccess, make_agent
from vivavoce.targets.target import Opening, Reply
from vivavoce.wire.own_traffic import marked_environment

if TYPE_CHECKING:
    from letta_client import AsyncLetta


LINE_LIMIT = 64 * 2**20
"""Bytes of one line of output."""

GRACE = 3.0
"""Seconds that a process may take to end by itself."""

_TAG = "VIVAVOCE_PROCESS"


class LettaProcess:
    """One running command line.

    Its tools run in process groups of their own and survive it, so every process of the family carries a tag in its
    environment and is found by it (on Linux; elsewhere only its own process group ends with it).
    """

    def __init__(self, process: Process, tag: str) -> None:
        self._process = process
        self._tag = tag.encode()
        self._torn = b""
        self._strays: deque[str] = deque(maxlen=20)
        self._errors = bytearray()
        self._drained = asyncio.create_task(self._drain_errors())

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], directory: Path) -> LettaProcess:
        """Start a command in a process group of its own.

        Raises:
            TargetFault: the system cannot start it.
        """
        tag = uuid4().hex
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=directory,
                env={**env, _TAG: tag},
                limit=LINE_LIMIT,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetFault(f"cannot start {command[0]} in {directory}: {error.strerror}", kind="crash") from error
        return cls(process, tag)

    async def write(self, event: Mapping[str, Any]) -> None:
        """Write one line."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the process is gone; reading says so, and why
            self._process.stdin.write(json.dumps(event).encode() + b"\n")
            await self._process.stdin.drain()

    async def read(self) -> dict[str, Any] | None:
        """Return the next event, None when the process has closed its output; other lines are kept as evidence.

        Raises:
            TargetFault: a line is longer than `LINE_LIMIT`.
        """
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError as error:
                raise TargetFault(f"letta wrote a line of more than {LINE_LIMIT:,} bytes", kind="size") from error
            if not line:
                return None
            event = self._parse(line.strip())
            if event is not None:
                return event

    async def ended(self) -> TargetFault:
        """Return the fault to raise when the output ended too early."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._process.wait()
                await asyncio.shield(self._drained)
        code = self._process.returncode
        message = "letta closed its output" if code is None else f"letta ended with exit code {code}"
        return TargetFault(f"{message} before the answer was complete", kind="crash", evidence=self.evidence())

    def evidence(self) -> str:
        """Return the end of what it wrote to stderr, and the lines on stdout that were not events."""
        errors = self._errors.decode(errors="replace").strip()
        return "\n".join([*self._strays, errors])[-EVIDENCE_LIMIT:]

    def kill(self) -> None:
        """Kill the process and everything it started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for _ in range(10):  # one of them may start another while we look
            family = self._family()
            if not family:
                return
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def close(self, grace: float = GRACE) -> int | None:
        """Let the process end by itself for `grace` seconds, kill what is left, and return the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            if grace:
                await self._gone(grace)
        finally:
            self.kill()
            await self._gone(GRACE)
            self._drained.cancel()
        return self._process.returncode

    async def _gone(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._discard_output()
                await asyncio.shield(self._drained)
                await self._process.wait()

    async def _discard_output(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(2**16):
            pass

    async def _drain_errors(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(2**14):
            self._errors += piece
            del self._errors[:-EVIDENCE_LIMIT]

    def _family(self) -> list[int]:
        tagged: list[int] = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it ended meanwhile, or belongs to another user
                if self._tag in environ.read_bytes():
                    tagged.append(int(environ.parent.name))
        return tagged

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        """Read a line as an event, alone, after other text, or as the second half of a torn one."""
        torn, self._torn = self._torn, b""
        start = max(line.find(b'{"type"'), 0)
        for candidate, rest in ((line, torn), (torn + line, b""), (line[start:], torn + line[:start])):
            event = _event(candidate)
            if event is not None:
                if rest:
                    self._strays.append(rest.decode(errors="replace"))
                return event
        if torn:
            self._strays.append(torn.decode(errors="replace"))
        if line.startswith(b"{"):
            self._torn = line
        elif line:
            self._strays.append(line.decode(errors="replace"))
        return None


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        return cast("dict[str, Any]", json.loads(line))
    except ValueError:
        return None


_OURS = {"-p", "--prompt", "--input-format", "--output-format", "--include-partial-messages", "-m", "--model"}
_CHOOSES_AGENT = {"--new-agent", "--agent", "-a", "--name", "-n", "--conversation", "--resume", "-r", "--ephemeral"}
_TAKES_FOLDER = {"--skills", "--import"}
_NOBODY = "nobody is here to approve; the permission mode of this evaluation decides"


@dataclass(frozen=True, slots=True)
class LettaCodeOptions:
    """How the command line runs.

    `flags` are further arguments as in a shell. Without a `permission_mode` every tool may run (`--yolo`); with one, a
    call that would need an approval is denied. Relative paths start at `directory`, also those of `--skills` and
    `--import`; the process runs there, or in `working_dir`, in which `{model}` is the last part of the model's handle.

    Raises:
        UsageError: the flags cannot be split, or set what is set here.
    """

    command: str = "letta"
    backend: Literal["local", "cloud"] | None = None
    flags: str = ""
    permission_mode: str | None = None
    directory: Path = Path()
    working_dir: str | None = None
    memory_dir: Path | None = None

    def __post_init__(self) -> None:
        try:
            reserved = _OURS & {flag.partition("=")[0] for flag in shlex.split(self.flags)}
        except ValueError as error:
            raise UsageError(f"flags: {error}: {self.flags}") from error
        if reserved:
            raise UsageError(f"flags: {', '.join(sorted(reserved))} is set by vivavoce itself")

    def arguments(self, model: str | None, agent_id: str | None) -> list[str]:
        """Return the arguments of a conversation; messages of the user are never among them."""
        flags = self._flags()
        arguments = ["--input-format", "stream-json", "--output-format", "stream-json"]
        if self.backend is not None:
            arguments += ["--backend", self.backend]
        if agent_id is not None:
            arguments += ["--agent", agent_id]
        elif not _CHOOSES_AGENT & set(flags):
            arguments += ["--new-agent"]
        if model is not None:
            arguments += ["--model", model]
        arguments += ["--yolo"] if self.permission_mode is None else ["--permission-mode", self.permission_mode]
        return arguments + flags

    def folder(self, model: str | None) -> Path:
        """Return the folder in which the process of a model runs."""
        if self.working_dir is None:
            return self.directory
        return self.directory / self.working_dir.replace("{model}", (model or "default").rpartition("/")[2])

    def _flags(self) -> list[str]:
        """Return the flags, with paths that mean the same wherever the process runs."""
        flags = shlex.split(self.flags)
        if self.working_dir is None:
            return flags
        before = [None, *flags]
        return [
            str((self.directory / flag).resolve()) if name in _TAKES_FOLDER else flag
            for name, flag in zip(before, flags, strict=False)
        ]


class LettaCodeTarget:
    """An agent of the Letta Code command line.

    Each conversation has a process and, unless `flags` choose one, an agent of its own; `factory` makes the agents on
    the server of `access`. A sample may set the process's environment (`extra_vars.env`) and `extra_vars.memory_dir`.
    The caller limits the time; a call that is given up ends the process and its tools.

    Raises:
        UsageError: a factory is given for the local backend, which has no server.
    """

    stateless = False
    visible_calls = default_calls("letta_code")

    def __init__(
        self,
        options: LettaCodeOptions | None = None,
        *,
        name: str | None = None,
        model: str | None = None,
        access: LettaAccess | None = None,
        factory: AgentFactory | None = None,
    ) -> None:
        self.options = options or LettaCodeOptions()
        if factory is not None and self.options.backend == "local":
            raise UsageError("agent_script needs a Letta server; backend 'local' has none")
        self.name = name or model or "letta_code"
        self.model = model
        self.access = access
        self.factory = factory
        self._client: AsyncLetta | None = None

    @property
    def client(self) -> AsyncLetta | None:
        """The connection to the server, for a set-up, made when first needed; None where there is no server."""
        if self._client is None and self.access is not None:
            self._client = self.access.connect()
        return self._client

    async def open(self, opening: Opening) -> LettaCodeSession:
        """Start the process of a conversation.

        Raises:
            UsageError: the command is not installed.
            TargetFault: it cannot be started, or the factory failed.
            SuiteFault: `extra_vars` are not valid, or the factory raised an error of its own.
        """
        env = self._environment(opening)
        binary = shutil.which(self.options.command, path=env.get("PATH"))
        if binary is None:
            raise UsageError(f"no command '{self.options.command}'; install it with: pip install letta")
        agent_id = None if self.factory is None else await self._create_agent(self.factory, opening)
        command = [binary, *self.options.arguments(self.model, agent_id)]
        folder = self.options.folder(self.model)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"working_dir {folder} cannot be created: {error.strerror or error}") from error
        process = await LettaProcess.start(command, env, folder)
        return LettaCodeSession(self, process, binary, env)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def redacted(self, fault: Fault) -> Fault:
        """Return a fault without the API key in it."""
        return (self.access or LettaAccess.find()).redacted(fault)

    async def _create_agent(self, factory: AgentFactory, opening: Opening) -> str:
        access = self.access or LettaAccess.find()
        client = access.connect()
        with access.faults():
            async with client:
                return await make_agent(factory, client, opening)

    def _environment(self, opening: Opening) -> dict[str, str]:
        added: Any = opening.extra_vars.get("env") or {}
        if not isinstance(added, dict) or any(not isinstance(value, str) for value in cast("Event", added).values()):
            raise SuiteFault("extra_vars.env must map names to texts", kind="format")
        env = {**os.environ, **marked_environment(), "DO_NOT_TRACK": "1", "DISABLE_AUTOUPDATER": "1"}
        if self.access is not None:
            env["LETTA_BASE_URL"] = self.access.base_url
            if self.access.api_key is not None:
                env["LETTA_API_KEY"] = self.access.api_key
        memory = opening.extra_vars.get("memory_dir") or self.options.memory_dir
        if memory is not None:
            env["MEMORY_DIR"] = env["LETTA_MEMORY_DIR"] = str((self.options.directory / memory).resolve())
        return {**env, **cast("dict[str, str]", added)}


class LettaCodeSession:
    """One conversation, in one process.

    Source of the protocol: `types/protocol.d.ts` of Letta Code, and its output.
    """

    opening: Sequence[AnyMessage] = ()

    def __init__(self, target: LettaCodeTarget, process: LettaProcess, binary: str, env: Mapping[str, str]) -> None:
        self.id: str | None = None
        self.agent_id: str | None = None
        self._target = target
        self._process = process
        self._binary = binary
        self._env = env
        self._folder = target.options.folder(target.model)
        self._turns = 0
        self._ours: set[str] = set()
        self._unasked: Usage | None = None
        self._broken = False

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Write the last message and read events up to the result of its turn.

        As in letta-evals, `{pwd}` in a text is the folder in which the process runs.

        Raises:
            TargetFault: the agent failed, or the process ended or wrote something unreadable; never retryable, for the
                agent may have stored the message.
        """
        content = to_letta(messages, self._turns)
        if isinstance(content, str):
            content = content.replace("{pwd}", self._folder.resolve().as_posix())
        self._turns += 1
        try:
            return await self._exchange(content)
        except BaseException as error:
            if isinstance(error, Fault):
                raise self._target.redacted(error) from error.__cause__
            self._give_up()
            raise

    async def state(self) -> dict[str, Any] | None:
        """Return the files of the agent's memory by their path without `.md`, None where the agent has no such memory.

        Asking starts the command line once more, which takes about a second.

        Raises:
            TargetFault: the memory cannot be read.
        """
        if self.agent_id is None:
            return None
        with TemporaryDirectory() as folder:
            command = [self._binary, "memory", "export", "--agent", self.agent_id, "--out", folder]
            if self._target.options.backend is not None:
                command += ["--backend", self._target.options.backend]
            process = await LettaProcess.start(command, self._env, self._target.options.directory)
            if await process.close(grace=30.0) != 0 and "not found" not in process.evidence():
                raise TargetFault("the memory of the agent cannot be read", kind="crash", evidence=process.evidence())
            return _memory(Path(folder))

    async def close(self) -> None:
        """End the process, and whatever its tools left running."""
        await self._process.close(0.0 if self._broken else GRACE)

    def _give_up(self) -> None:
        self._broken = True
        self._process.kill()

    async def _exchange(self, content: UserContent) -> Reply:
        await self._process.write({"type": "user", "message": {"role": "user", "content": content}})
        turn, is_ours, error = LettaTurn(), True, None
        while (event := await self._next_event()) is not None:
            match event.get("type"):
                case "system":
                    self.id, self.agent_id = event.get("conversation_id"), event.get("agent_id")
                case "queue_item_enqueued" if event.get("source") == "user":
                    self._ours.add(str(event.get("item_id")))
                case "queue_batch_dequeued":
                    is_ours = bool(self._ours & set(event.get("item_ids") or ()))
                    turn, error = LettaTurn(), None
                case "message":
                    turn.read(event)
                case "error":
                    error = event
                case "control_request":
                    await self._deny(event)
                case "result" if is_ours:
                    return self._finish(turn, event, error)
                case "result":
                    self._unasked = _sum(self._unasked, turn.usage)
                    turn, error = LettaTurn(), None
                case _:
                    pass
        self._broken = True
        raise await self._process.ended()

    async def _next_event(self) -> dict[str, Any] | None:
        try:
            return await self._process.read()
        except TargetFault:
            self._give_up()
            raise

    async def _deny(self, event: Event) -> None:
        if event["request"].get("subtype") == "can_use_tool":
            verdict = {"behavior": "deny", "message": _NOBODY}
            response = {"subtype": "success", "request_id": event.get("request_id"), "response": verdict}
            await self._process.write({"type": "control_response", "response": response})

    def _finish(self, turn: LettaTurn, result: Event, error: Event | None) -> Reply:
        succeeded = result.get("subtype") == "success"
        if error is not None and not succeeded:
            turn.read({**(error.get("api_error") or {}), **error, "message_type": "error_message"})
        stop = "end_turn" if succeeded else result.get("stop_reason") or "error"
        turn.read({"message_type": "stop_reason", "stop_reason": stop})
        try:
            reply = turn.reply()
        except Fault as fault:
            sources = [fault.evidence, self._process.evidence()]
            evidence = shorten("\n".join(text for text in sources if text) or None)
            raise fault.restate(str(fault), evidence=evidence) from fault.__cause__
        unasked, self._unasked = self._unasked, None
        return Reply(reply.messages, _sum(unasked, reply.usage))


def _sum(a: Usage | None, b: Usage | None) -> Usage | None:
    return a + b if a is not None and b is not None else a or b


def _memory(folder: Path) -> dict[str, Any] | None:
    files = {file.relative_to(folder).with_suffix("").as_posix(): file for file in sorted(folder.rglob("*.md"))}
    return {label: _without_header(file.read_text(errors="replace")) for label, file in files.items()} or None


def _without_header(text: str) -> str:
    """Return the text of a memory file without the `---` block that describes it."""
    if not text.startswith("---\n"):
        return text.strip()
    _, _, rest = text[4:].partition("\n---\n")
    return rest.strip()
