"""The loop of a test: turn after turn, each made of steps, until a condition stops it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from vivavoce.errors import BudgetExhausted, Fault, TestingFault, UsageError, VivavoceError
from vivavoce.messages import AIMessage, FunctionCall, ToolCall, ToolMessage
from vivavoce.models.json_schema import mismatch
from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.context import TestState
from vivavoce.penelope.judging import Judges, note_unjudged
from vivavoce.penelope.stopping import Stop, StoppingCondition, TesterLeftCondition, first_stop
from vivavoce.penelope.strategies.history import refuses_in_words
from vivavoce.penelope.strategies.strategy import Move, Strategy, heeds_refusals
from vivavoce.penelope.tester import Call, Tester
from vivavoce.penelope.tools.analysis import AnalysisTool
from vivavoce.penelope.tools.end_conversation import NAME as END
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool, result_text, tool_result_of
from vivavoce.penelope.tools.tool import Tool, ToolResult, cut_findings, cut_result
from vivavoce.penelope.turn import Step, Turn
from vivavoce.records import trajectory
from vivavoce.records.score import Failure, Usage, failure_of, shorten, usage_of
from vivavoce.records.trajectory import SCRIPTED
from vivavoce.user_code import foreign_code

OnTurn = Callable[[Turn], object]
"""Called with each turn as it ends; what it returns is awaited where it can be."""

UNANSWERED = Failure(blame="target", kind="timeout", message="the target had not answered when time was over")
"""The failure of a turn in which the test was ended."""

_ENDS_A_TURN = (SEND, END)
_LAST_STEPS = 2
"""With so few steps left in a turn only the tools that end it may be called."""

_WITHIN = ("step_budget", "tester_down", "timeout", "cost")
_HOPELESS = (401, 403, 404)
"""Answers of a model's endpoint after which asking again is pointless."""


@dataclass(frozen=True, slots=True)
class TurnLoop:
    """One test, turn after turn; what happens is written into `state`."""

    state: TestState
    tester: Tester
    tools: Mapping[str, Tool]
    send: TargetInteractionTool
    strategy: Strategy
    checks: Sequence[MessageCheck]
    judges: Judges
    conditions: tuple[StoppingCondition, ...]
    max_steps: int = 10
    on_turn: OnTurn | None = None

    async def run(self) -> Stop:
        """Go on until a condition stops the test; before the first turn none does.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        state = self.state
        while True:
            await self._hear_refusal()
            if await self._turn(self._move()):
                await self.judges.after_turn(state)
                await self._notify(state.turns[-1])
            if stop := first_stop(self.conditions, state) or TesterLeftCondition().check(state):
                return stop

    async def take_up(self, earlier: Sequence[Turn]) -> Failure | None:
        """Go on from turns that were led before, as if in this test; return why the target does not get so far.

        What a target that keeps the conversation itself answers to the same messages takes the place of what it did.

        Raises:
            Fault: the session cannot begin, or the world of the row cannot be returned to.
        """
        state, dialogue = self.state, self.send.dialogue
        heard_exchanges = [turn.exchange for turn in _heard_turns(earlier)]
        exchanges = await dialogue.go_on([turn.exchange for turn in earlier], heard_exchanges)
        state.opening = list(dialogue.opening)
        for turn, exchange in zip(earlier, exchanges, strict=False):
            self.tester.memory.begin_turn(f"Turn {turn.turn_number} of at most {state.context.max_turns}.")
            for step in turn.steps:
                self.tester.memory.add(step)
            answer = turn.tool_message.model_copy(update={"content": result_text(tool_result_of(exchange))})
            state.turns.append(turn.model_copy(update={"exchange": exchange, "tool_message": answer}))
            state.spend("target", exchange.usage)
            self.tester.memory.add(state.turns[-1])
        return exchanges[-1].failure if exchanges else None

    async def _notify(self, turn: Turn) -> None:
        try:
            if self.on_turn is not None:
                with foreign_code():
                    returned = self.on_turn(turn)
                    if inspect.isawaitable(returned):
                        await returned
        except VivavoceError:
            raise
        except Exception as error:
            raise _broke("listener", "on_turn", error) from error

    async def _hear_refusal(self) -> None:
        """Ask whether the target refused in the last turn, where the strategy heeds that and the words do not say."""
        state, panel = self.state, self.judges.panel
        last = state.turns[-1] if state.turns else None
        if last is None or not last.reply.strip() or not heeds_refusals(self.strategy) or refuses_in_words(last):
            return
        question = panel.refusal.measured(self.judges.metric_input(state))
        result = await self.judges.in_time(question, panel.refusal)
        state.spend("judge", result.usage)
        if result.state != "scored":
            state.counts["refusal_not_judged"] += 1
            note_unjudged("whether the target refused", result)
            return
        state.turns[-1] = last.model_copy(update={"target_refused": result.raw})

    def _move(self) -> Move:
        try:
            with foreign_code():
                move = self.strategy.move(self.state)
        except Exception as error:
            raise _broke("strategy", self.strategy.name, error) from error
        if not isinstance(move, Move):  # pyright: ignore[reportUnnecessaryIsInstance] - it may be user-defined
            raise TestingFault(f"the strategy {self.strategy.name} returned a {type(move).__name__}, not a Move")
        return move

    async def _turn(self, move: Move) -> bool:
        """Take steps until a message is sent to the target, and say whether one was.

        None is sent where the tester leaves, or where a condition stops the test within the turn.
        """
        state = self.state
        state.steps = []
        state.objections.clear()
        state.guidance, state.phase = move.guidance, move.phase
        fresh = await self._prepare(move)
        self.tester.memory.begin_turn(self._note(move, fresh))
        if move.say is not None:
            await self._say(_scripted_call(move.say, len(state.turns)), fresh)
            return True
        while not (state.left or first_stop(self._within, state)):
            if await self._steps(fresh):
                return state.left is None
        return False

    @property
    def _within(self) -> tuple[StoppingCondition, ...]:
        """The conditions that may stop a test within a turn."""
        return tuple(condition for condition in self.conditions if condition.name in _WITHIN)

    async def _prepare(self, move: Move) -> bool:
        """Begin a new session or take the last exchange back; say whether a new session begins."""
        state, dialogue = self.state, self.send.dialogue
        if move.new_session and state.turns:
            await dialogue.new_session()
        elif move.rollback and state.stateless and state.turns:
            dialogue.rollback()
            state.turns[-1] = state.turns[-1].model_copy(update={"forgotten": True})
            state.counts["forgotten"] += 1
        return move.new_session and bool(state.turns)

    def _note(self, move: Move, fresh: bool) -> str:
        state = self.state
        parts = [f"Turn {len(state.turns) + 1} of at most {state.context.max_turns}."]
        parts += ["A new conversation begins; the assistant remembers nothing."] if fresh else []
        if state.turns and state.turns[-1].forgotten:
            parts.append("The last exchange is taken back; the assistant does not remember it.")
        parts += [move.guidance] if move.guidance else []
        return " ".join(parts)

    async def _steps(self, fresh: bool) -> bool:
        """Ask the model for its next step and take it; say whether the turn has ended."""
        state = self.state
        try:
            with foreign_code():
                answer = await self.tester.next()
        except BudgetExhausted:
            raise
        except Exception as error:
            self._model_failed(error)
            return False
        state.tester_failures.clear()
        state.spend("tester", answer.usage)
        if not answer.calls:
            self._refuse(AIMessage(content=answer.text or ""), "", self.tester.retry_advice)
            return False
        ended = False
        for call in answer.calls:
            if ended:
                self._note_refusal(call, "not carried out: the turn had ended; one message at a time")
            else:
                ended = await self._step(call, fresh)
        if ended and state.left is None:  # later calls of the same answer belong to the turn that it ended
            state.turns[-1].steps.extend(state.steps)
            state.steps = []
        return ended

    async def _step(self, call: Call, fresh: bool) -> bool:
        """Take one step; say whether it ended the turn."""
        state = self.state
        if objection := await self._objection(call):
            self._note_refusal(call, objection)
            return False
        assert call.arguments is not None
        if call.name == SEND:
            await self._say(call, fresh)
            return True
        result, findings = await self._use(self.tools[call.name], call.arguments)
        state.findings += findings
        step = _step(call, result)
        state.steps.append(step)
        self.tester.memory.add(step)
        if call.name == END:
            state.left = str(call.arguments.get("reason") or "no reason given")
        return call.name == END

    async def _objection(self, call: Call) -> str | None:
        """Say why a call is not carried out, None when it is."""
        if call.name not in self.tools:
            return f"the tool {call.name} does not exist; the tools are: {', '.join(self.tools)}"
        if why_not := self._not_now(call.name):
            return why_not
        if call.arguments is None:
            return f"the arguments of {call.name} are not a JSON object"
        message = call.arguments.get("message")
        if call.name == SEND and len(call.arguments) == 1 and isinstance(message, str):  # nearly every step
            return await self._objection_to_message(message)
        try:
            with foreign_code():
                problem = mismatch(call.arguments, self.tools[call.name].parameters)
        except Exception as error:  # the schema of a user-defined tool may be wrong in many ways
            problem = str(error)
        if problem:
            return f"wrong arguments for {call.name}: {problem}"
        return await self._objection_to_message(str(call.arguments["message"])) if call.name == SEND else None

    def _not_now(self, tool: str) -> str | None:
        """Say why a tool cannot be called at this point of the test, None where it can."""
        least = self.state.context.min_turns
        if tool == END and self.state.explores_rules:
            return "it is too early to leave: there are turns left; write the next message"
        if tool == END and len(self.state.turns) < least:
            turns = f"{least} turn{'s' * (least != 1)}"
            return f"it is too early to leave: this conversation has at least {turns}; write the next message"
        if tool not in _ENDS_A_TURN and self.max_steps - len(self.state.steps) <= _LAST_STEPS:
            return f"{tool} is not used any more in this turn, for its steps are nearly used up; write the next message"
        return None

    async def _objection_to_message(self, message: str) -> str | None:
        for check in self.checks:
            try:
                with foreign_code():
                    objection = check.objection(message, self.state)
                    if inspect.isawaitable(objection):
                        objection = await objection
            except BudgetExhausted:
                raise
            except Exception as error:
                raise _broke("check", check.name, error) from error
            if not objection:
                continue
            self.state.counts[check.name] += 1
            self.state.objections[check.name] += 1
            if check.patience is not None and self.state.objections[check.name] > check.patience:
                self.state.counts[f"{check.name}_overruled"] += 1
                continue
            return f"not sent: {objection}"
        return None

    async def _use(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the text of a tool's result for the model, and its findings; an exception becomes such a text."""
        try:
            with foreign_code():
                result = self._count_usage(tool, await tool.aexecute(**arguments))
                return result_text(cut_result(result)), cut_findings(tool.findings(result))
        except BudgetExhausted:
            raise
        except Exception as error:
            return result_text(ToolResult(success=False, error=shorten(f"{type(error).__name__}: {error}", 500))), []

    def _count_usage(self, tool: Tool, result: ToolResult) -> ToolResult:
        """Return a result without the usage of a model behind the tool, which is counted instead."""
        if not isinstance(result, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance] - it may be user-defined
            raise TypeError(f"{tool.name} returned a {type(result).__name__}, not a ToolResult")
        output: object = result.output
        if not isinstance(tool, AnalysisTool) or not isinstance(output, dict):
            return result
        output = dict(cast("dict[str, Any]", output))
        usage = output.pop("usage", None)
        self.state.spend("tester", Usage.model_validate(usage) if usage else None)
        return result.model_copy(update={"output": output})

    async def _say(self, call: Call, fresh: bool) -> None:
        """Send a message to the target; if the time runs out meanwhile, the message is recorded nevertheless."""
        state = self.state
        assert call.arguments is not None
        message = self.send.message(**call.arguments)
        try:
            exchange = await self.send.dialogue.say(message)
        except asyncio.CancelledError:
            exchange = trajectory.Turn(index=len(state.turns), messages=[message], failure=UNANSWERED)
            self._write(call, exchange, fresh)
            raise
        self._write(call, exchange, fresh)

    def _write(self, call: Call, exchange: trajectory.Turn, fresh: bool) -> None:
        state = self.state
        turn = _turn(call, exchange, len(state.turns) + 1, state.steps, state.guidance or None, fresh=fresh)
        state.steps = []
        if not state.turns:
            state.opening = list(self.send.dialogue.opening)
        state.turns.append(turn)
        if state.phase:
            state.covered.setdefault(state.phase, []).append(turn.turn_number)
        state.spend("target", exchange.usage)
        self.tester.memory.add(turn)

    def _model_failed(self, error: Exception) -> None:
        state = self.state
        failure = failure_of(error, "tester").model_copy(update={"blame": "tester"})
        state.tester_failures.append(failure)
        state.spend("tester", usage_of(error))
        state.counts["tester_failures"] += 1
        hopeless = isinstance(error, Fault) and (error.status in _HOPELESS or error.kind == "not_recorded")
        state.tester_gone = hopeless or isinstance(error, UsageError)

    def _note_refusal(self, call: Call, why: str) -> None:
        self._refuse(call.message, call.reasoning, why)

    def _refuse(self, message: AIMessage, reasoning: str, why: str) -> None:
        result = result_text(ToolResult(success=False, error=why))
        step = Step.model_construct(
            assistant_message=message, tool_message=_tool_message(message, result), reasoning=reasoning, refused=True
        )
        self.state.steps.append(step)
        self.state.counts["refused_steps"] += 1
        self.tester.memory.add(step)


def as_led(exchange: trajectory.Turn) -> Turn:
    """Return a turn in which somebody else spoke to the target, as if the test had prescribed the message."""
    text = next(message.text for message in exchange.messages if message.role == "user")
    return _turn(_scripted_call(text, exchange.index), exchange, exchange.index + 1, [], None, fresh=False)


def _turn(
    call: Call, exchange: trajectory.Turn, number: int, steps: list[Step], guidance: str | None, *, fresh: bool
) -> Turn:
    step = _step(call, result_text(tool_result_of(exchange)))
    retrieved = [text for message in exchange.messages for text in message.retrieval_context or ()]
    return Turn.model_construct(
        assistant_message=step.assistant_message,
        tool_message=step.tool_message,
        reasoning=step.reasoning,
        refused=False,
        turn_number=number,
        timestamp=datetime.now(UTC),
        exchange=exchange,
        evaluation=None,
        guidance=guidance,
        retrieval_context=retrieved or None,
        steps=steps,
        fresh=fresh,
        forgotten=False,
    )


def _heard_turns(earlier: Sequence[Turn]) -> list[Turn]:
    """Return the turns that the target knows of: those of the session that goes on, which were not taken back."""
    begins = max((place for place, turn in enumerate(earlier) if turn.fresh), default=0)
    return [turn for turn in earlier[begins:] if not turn.forgotten]


def _broke(what: str, name: str, error: Exception) -> TestingFault:
    return TestingFault(f"the {what} {name} raised {type(error).__name__}: {error}")


def _step(call: Call, result: str) -> Step:
    message = _tool_message(call.message, result)
    return Step.model_construct(
        assistant_message=call.message, tool_message=message, reasoning=call.reasoning, refused=False
    )


def _tool_message(message: AIMessage, content: str) -> ToolMessage:
    call = message.tool_calls[0] if message.tool_calls else None
    return ToolMessage(
        content=content,
        tool_call_id=call.id if call else None,
        name=call.name if call else None,
    )


def _scripted_call(text: str, number: int) -> Call:
    function = FunctionCall(name=SEND, arguments=ToolCall(name=SEND, args={"message": text}).function.arguments)
    message = AIMessage(tool_calls=[ToolCall(id=f"{SCRIPTED}{number + 1}", function=function)])
    return Call(message, SEND, {"message": text}, "scripted")
