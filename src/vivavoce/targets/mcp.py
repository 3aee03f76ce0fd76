"""`McpTarget`: a bot that is one tool of an MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.messages import AnyMessage, said_by_assistant
from vivavoce.records.trajectory import default_calls
from vivavoce.targets.target import Opening, Reply
from vivavoce.targets.template import Template, structure_template
from vivavoce.wire.chat import wire_messages

VARIABLES = ("message", "messages", "conversation_id", "user", "sample")


class Caller(Protocol):
    """A session with an MCP server."""

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """The definitions of its tools, as a chat completions endpoint takes them."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; return its result as text, and whether the tool says that it failed.

        Raises:
            SuiteFault: the server failed.
        """
        ...

    async def close(self) -> None:
        """End the session."""
        ...


class CallableServer(Protocol):
    """An MCP server."""

    async def open(self) -> Caller:
        """Begin a session.

        Raises:
            SuiteFault: the server cannot be started or reached.
        """
        ...


class McpTarget:
    """A tool that is called with each message, in a session of the server for each conversation.

    `arguments` may hold `{{ message }}`, `{{ messages }}`, `{{ conversation_id }}`, `{{ user }}` and
    `{{ sample.extra_vars.x }}`; without them the one argument that the tool requires, or its only one, gets the text of
    the message.

    Raises:
        UsageError: a template is not valid.
    """

    stateless = False
    visible_calls = default_calls("mcp")

    def __init__(
        self, name: str, server: CallableServer, tool: str, *, arguments: Mapping[str, object] | None = None
    ) -> None:
        self.name, self.server, self.tool = name, server, tool
        self.arguments = None if arguments is None else structure_template(arguments, f"{name}.arguments", VARIABLES)
        self.knows_users = self.arguments is not None and "user" in self.arguments.variables

    async def open(self, opening: Opening) -> McpTargetSession:
        """Begin a session.

        Raises:
            TargetFault: the server cannot be started or reached.
            SuiteFault: it has no such tool, or not exactly one argument that could get the message.
        """
        try:
            caller = await self.server.open()
        except SuiteFault as fault:
            raise _of_target(fault) from fault
        try:
            arguments = self.arguments or self._one_argument(caller)
        except SuiteFault:
            await caller.close()
            raise
        return McpTargetSession(self, caller, arguments, opening)

    async def close(self) -> None:
        """Do nothing: each conversation has its own session."""

    def _one_argument(self, caller: Caller) -> Template:
        """Return the template of the only argument that can get the message."""
        functions = [cast("Mapping[str, Any]", definition["function"]) for definition in caller.definitions]
        found = next((function for function in functions if function["name"] == self.tool), None)
        if found is None:
            names = ", ".join(str(function["name"]) for function in functions) or "none"
            raise SuiteFault(f"{self.name}: the server has no tool '{self.tool}'; it has {names}", kind="tool")
        schema = cast("Mapping[str, Any]", found.get("parameters") or {})
        names = [*(schema.get("required") or schema.get("properties") or ())]
        if len(names) != 1:
            known = ", ".join(schema.get("properties") or ()) or "none"
            text = f"{self.name}: write arguments: with '{{{{ message }}}}' in one; '{self.tool}' takes {known}"
            raise SuiteFault(text, kind="tool")
        return structure_template({names[0]: "{{ message }}"}, f"{self.name}.arguments", VARIABLES)


class McpTargetSession:
    """One session."""

    opening: Sequence[AnyMessage] = ()
    id: str | None = None

    def __init__(self, target: McpTarget, caller: Caller, arguments: Template, opening: Opening) -> None:
        self._target, self._caller, self._arguments = target, caller, arguments
        self._values = opening.variables

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Call the tool.

        Raises:
            TargetFault: the server or the tool failed, or it returned no text.
        """
        said = {"message": messages[-1].text, "messages": wire_messages(messages)}
        try:
            text, failed = await self._caller.call(self._target.tool, self._arguments.fill({**self._values, **said}))
        except SuiteFault as fault:
            raise fault if fault.kind == "template" else _of_target(fault) from fault
        if failed or not text:
            came = f"failed: {text}" if failed else "returned no text"
            raise TargetFault(f"the tool '{self._target.tool}' of {self._target.name} {came}", kind="tool")
        return Reply([said_by_assistant(text)])

    async def state(self) -> dict[str, Any] | None:
        """Return None: a server shows no state."""
        return None

    async def close(self) -> None:
        """End the session."""
        await self._caller.close()


def _of_target(fault: SuiteFault) -> TargetFault:
    """Return the failure of a server as that of the target, which it is."""
    return TargetFault(str(fault), kind=fault.kind, evidence=fault.evidence)
