"""A conversation in the terminal: messages and calls, grades of turns, causes of failures, and calls of a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from vivavoce.comparing.call_outcomes import words_say_failed
from vivavoce.comparing.text import join_text_parts
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    AudioPart,
    ContentPart,
    FilePart,
    ImagePart,
    RefusalPart,
    TextPart,
    ToolMessage,
)
from vivavoce.records.agents import Agents, Handoff
from vivavoce.records.details import usage_text
from vivavoce.records.replies import JudgeCall, JudgeExchange
from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure, Finding, Score, State, to_number, turn_label, turn_span, turn_title
from vivavoce.records.trajectory import Test, Trajectory, Turn, origin, outcome_of
from vivavoce.report.tester import after_turn, discarded_title, ending, judgements, thoughts, try_title
from vivavoce.report.text import Labelled, clock, day, one_line
from vivavoce.report.verdict import failed_steps, findings, score_text
from vivavoce.safe_text import safe
from vivavoce.store.runs.rows import status_of

REWARD = "reward"
"""The name of the score that combines the others."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a conversation has an error or did not pass.

    `grader` is the name of the score that says so, None where the conversation itself broke or its test failed. `turn`
    is an index from 0, None where it is about the whole conversation. `whose` says whose fault it was, empty where
    nobody decided that. `what` is the sentence of a finding, empty without one, and `why` the reason. `agent` is the
    one of several agents whose fault it was, or that acted last in the turn; empty where nobody knows.
    """

    state: Literal["error", "fail"]
    grader: str | None
    turn: int | None
    whose: str
    what: str
    why: str
    agent: str = ""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return "whole conversation" if self.turn is None else turn_label(self.turn)

    @property
    def text(self) -> str:
        """What failed and why, in one sentence, or in two where the finding is one by itself."""
        parts = [self.what] if self.what else []
        parts += [self.why] if self.why and self.why != self.what else []
        return (" " if self.what.endswith((".", "!", "?")) else "; ").join(parts)


def causes(outcome: Outcome) -> list[Cause]:
    """Return the causes of a verdict: errors first, then what failed about the whole, then by turn.

    An error that several scores share is one cause. The reward is one only where no other score says why it failed.
    """
    all_causes = list(_collect_causes(outcome))
    if not all_causes and outcome.reward is not None:
        all_causes = list(_of_score(REWARD, outcome.reward, Agents(outcome.attempt.trajectory.messages), set()))
    return sorted(all_causes, key=lambda cause: (cause.state != "error", cause.turn is not None, cause.turn or 0))


def _collect_causes(outcome: Outcome) -> Iterator[Cause]:
    seen: set[Failure] = set()
    agents = Agents(outcome.attempt.trajectory.messages)
    yield from _of_talk(outcome.attempt.trajectory, agents, seen)
    for name, score in outcome.scores.items():
        yield from _of_score(name, score, agents, seen)


def _of_talk(talk: Trajectory, agents: Agents, seen: set[Failure]) -> Iterator[Cause]:
    """Yield what broke in the conversation, and why its test failed."""
    for turn in talk.turns:
        for cause in _failure_causes(None, turn.index, turn.failure, seen):
            yield replace(cause, agent=_last(agents, turn.index)) if cause.whose == "target" else cause
    yield from _failure_causes(None, None, talk.failure, seen)
    if talk.test is not None and talk.test.target_passed is False:
        test = talk.test
        yield Cause("fail", None, None, test.blame or "", "", test.blame_reason or test.stop_reason or test.status)


def _failure_causes(
    grader: str | None, turn: int | None, failure: Failure | None, seen: set[Failure]
) -> Iterator[Cause]:
    if failure is not None and failure not in seen:
        seen.add(failure)
        yield Cause("error", grader, turn, failure.blame, "", failure.message)


def _last(agents: Agents, turn: int | None) -> str:
    """Return the one of several agents that acts last in a turn; empty without a turn, or where there is one agent."""
    return (agents.last_in(turn) or "") if agents.several and turn is not None else ""


def _of_score(name: str, score: Score, agents: Agents, seen: set[Failure]) -> Iterator[Cause]:
    state = status_of(score.state, score.passed)
    turns = [turn for turn in score.turns or () if status_of(turn.state, turn.passed) in ("fail", "error")]
    for turn in turns:
        yield from _of_score(name, turn, agents, seen)
    if state == "error":
        if score.failure is None and not turns:
            yield Cause("error", name, score.turn, "", "", score.reason or "it has no score")
        yield from _failure_causes(name, score.turn, score.failure, seen)
    elif state == "fail" and not turns:
        bad = [finding for finding in score.findings if finding.state == "fail"]
        why = score.reason or _plain(score)
        rest = "" if bad and _restates(why, bad[0]) else why
        for place, finding in enumerate(bad):
            agent = agents.of_finding(finding, score.turn) if agents.several else None
            yield replace(_of_finding(name, score, finding, rest if place == 0 else ""), agent=agent or "")
        if not bad:
            yield Cause("fail", name, score.turn, "", "", why, _last(agents, score.turn))


def _restates(reason: str, first: Finding) -> bool:
    """Say whether a reason only lists findings, as those of assertions and rules do: it begins with the first one."""
    place = "" if first.turn is None else f"{turn_label(first.turn)}: "
    return reason.removeprefix(place).startswith(first.fact)


def _of_finding(name: str, score: Score, finding: Finding, why: str) -> Cause:
    turn = score.turn if finding.turn is None else finding.turn
    return Cause(
        "fail", name, _first_cited_turn(finding) if turn is None else turn, finding.blame or "", _fact(finding), why
    )


def _fact(finding: Finding) -> str:
    """Return what happened: a sentence that states it, else the verdict on what was asked, as `unmet: a refund`."""
    states_it = finding.kind == "rule" or finding.fact != finding.what or finding.verdict in ("", "missed")
    return finding.fact if states_it else f"{finding.verdict.replace('_', ' ')}: {finding.what}"


def _first_cited_turn(finding: Finding) -> int | None:
    """Return the first turn that a finding cites."""
    return next(iter(_turns(finding)), None)


def _turns(finding: Finding) -> Iterable[int]:
    return (each.turn for each in finding.evidence if each.verified and each.turn is not None)


def _plain(score: Score) -> str:
    scored_value = score.value if score.raw is None else score.raw
    return f"scored {scored_value:.3g}" if isinstance(scored_value, float) else f"scored {scored_value}"


LONG = 8
"""Turns from which a conversation has its causes listed above it; those of a shorter one are in sight anyway."""
MAX_CAUSES = 8
"""Causes that are listed."""
_WIDTH = 200


def cause_lines(outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what failed in a long conversation, nothing if it passed."""
    all_causes = causes(outcome) if len(outcome.attempt.trajectory.turns) >= LONG else []
    if not all_causes:
        return
    yield Text("── what failed", style="dim")
    yield from map(_cause_line, all_causes[:MAX_CAUSES])
    if len(all_causes) > MAX_CAUSES:
        yield Text(f"    … and {len(all_causes) - MAX_CAUSES:,} more", style="dim")


def _cause_line(cause: Cause) -> Labelled:
    mark, style = ("!", "yellow") if cause.state == "error" else (" ", "red")
    known = ", ".join(word for word in (cause.whose, one_line(cause.agent)) if word)
    whose = f" ({known})" if known else ""
    name = f"{safe(cause.grader)}: " if cause.grader else ""
    return Labelled(
        Text(f" {mark}  {cause.place}{whose}  ", style=style), Text(one_line(f"{name}{cause.text}", _WIDTH))
    )


MARKS: dict[State, str] = {"scored": " ", "error": "!", "skipped": "–"}
EVIDENCE_LINES = 6
"""Lines of evidence that are shown."""
_SPEAKERS = {"user": "bold cyan", "assistant": "bold", "tool": "dim", "system": "dim", "developer": "dim"}
_INDENT = Text(" " * 11)


def conversation(outcome: Outcome) -> Group:
    """Return a conversation turn by turn, with the grades of each turn below it.

    Each failure is shown in full once, at its first place, with its cause and its details.
    """
    return Group(*_Transcript(outcome).parts())


def exchange(turn: Turn) -> Group:
    """Return one turn, for a live view."""
    parts: list[RenderableType] = list(_messages(turn.messages))
    if turn.failure is not None:
        parts.append(Text(f"  ! {safe(str(turn.failure))}", style="bold yellow"))
    return Group(*parts)


class _Transcript:
    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._shown_failures: set[Failure] = set()

    def parts(self) -> Iterator[RenderableType]:
        talk = self._outcome.attempt.trajectory
        agents = Agents(talk.messages)
        yield from _discarded_tries(talk.test)
        yield from _messages(talk.opening, agents)
        for turn in talk.turns:
            seconds = "" if turn.seconds is None else f" · {turn.seconds:.2f} s"
            yield Text(f"── {safe(turn_title(turn.index, turn.mark))}{seconds}", style="dim")
            yield from thoughts(talk.test, turn.index)
            yield from _messages(turn.messages, agents)
            yield from self._failure(turn.failure)
            yield from after_turn(talk.test, turn.index)
            yield from failed_steps(self._whole_scores(), turn.index)
            yield from self._turn_grades(turn.index)
        yield from self._failure(talk.failure)
        if talk.test is not None:
            yield Text("── test", style="dim")
            yield from ending(talk.test)
            yield from judgements(talk.test)
        yield Text("── grades", style="dim")
        for name, score in self._outcome.scores.items():
            yield from self._grade(name, score)
        if self._outcome.reward is not None:
            yield from self._grade("reward", self._outcome.reward)

    def _whole_scores(self) -> Iterator[Score]:
        test = self._outcome.attempt.trajectory.test
        yield from test.evaluation.values() if test is not None else ()
        yield from self._outcome.scores.values()

    def _turn_grades(self, index: int) -> Iterator[RenderableType]:
        for name, score in self._outcome.scores.items():
            for turn in score.turns or ():
                if turn.turn == index:
                    yield from self._grade(name, turn)

    def _failure(self, failure: Failure | None) -> Iterator[RenderableType]:
        if failure is not None and failure not in self._shown_failures:
            self._shown_failures.add(failure)
            yield Labelled(Text("  ! ", style="bold yellow"), Text(safe(str(failure)), style="bold yellow"))
            yield from _evidence(failure)

    def _grade(self, name: str, grade: Score) -> Iterator[RenderableType]:
        failure = grade.failure
        if failure is None:
            yield _grade_line(name, grade, grade.reason or "")
            yield from findings(grade)
        elif failure in self._shown_failures:
            yield _grade_line(name, grade, _again(grade))
        else:
            self._shown_failures.add(failure)
            yield _grade_line(name, grade, str(failure))
            yield from _evidence(failure)


def _discarded_tries(test: Test | None) -> Iterator[RenderableType]:
    """Yield the tries that the tester spoilt, and the title of the one that counts."""
    tries = test.discarded if test is not None else []
    for i, earlier in enumerate(tries):
        yield Text(f"── {discarded_title(i, earlier)}", style="bold")
        yield from _messages(earlier.opening)
        for j, turn in enumerate(earlier.history):
            yield Text(f"── {turn_label(j)}", style="dim")
            yield from thoughts(earlier, j)
            if turn.exchange is not None:
                yield exchange(turn.exchange)
            yield from after_turn(earlier, j)
        yield from ending(earlier)
    if tries:
        yield Text(f"── {try_title(len(tries))}", style="bold")


def _again(grade: Score) -> str:
    """Return why there is no score if the error is shown above."""
    turns = [turn for turn in grade.turns or () if turn.state != "skipped"]
    if not turns:
        return "see the error above"
    return f"{sum(turn.state == 'error' for turn in turns)} of {len(turns)} turns could not be graded"


def _grade_line(name: str, grade: Score, why: str) -> Labelled:
    state = grade.state
    value = score_text(grade)
    style = "yellow" if state == "error" else {True: "green", False: "red", None: "dim"}[grade.passed]
    label = Text.assemble((f"{MARKS[state]:>2} {value:>7}  ", style), (safe(name), "bold"), "  ")
    return Labelled(label, Text(one_line(why, 400)))


def _messages(messages: Sequence[AnyMessage], agents: Agents | None = None) -> Iterator[RenderableType]:
    """Yield messages, and lines for handoffs; `agents` are those of the whole conversation, of these unless given."""
    among = agents or Agents(messages)
    for message in messages:
        yield from _message(message, among.several)
        if (handoff := among.handoff_after(message)) is not None:
            yield Text(f"   handoff  {safe(handoff_text(handoff))}", style="bold blue")


def handoff_text(handoff: Handoff) -> str:
    """Return a handoff as a reader sees it: from whom to whom."""
    return f"{one_line(handoff.sender or 'an agent without a name')} → {one_line(handoff.receiver)}"


def _message(message: AnyMessage, with_name: bool) -> Iterator[RenderableType]:
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    words = safe(words_of(message))
    agent = f"{one_line(message.name)}: " if with_name and message.role == "assistant" and message.name else ""
    label = Text(f"{message.role:>9}  ", style=_SPEAKERS[message.role])
    if words or not calls:
        known = _about(message) if isinstance(message, ToolMessage) else ""
        before = (f"({known}) " if known else "", "dim"), (agent, "bold")
        yield Labelled(label, Text.assemble(*before, words or "(no text)"))
    for i, call in enumerate(calls):
        call_text = Text.assemble(
            ("" if words else agent, "bold"),
            (f"{safe(call.name)}({one_line(call.function.arguments, 400)})", "magenta"),
        )
        beside = label if not words and i == 0 else _INDENT
        yield Labelled(Text.assemble(beside, ("→ ", "magenta")), call_text)


def _about(result: ToolMessage) -> str:
    """Return what a reader should know of a result: its origin, and a failure that its words do not tell."""
    has_failed = outcome_of(result) == "failed" and not words_say_failed(result.text)
    return ", ".join(filter(None, (origin(result), "failed" if has_failed else "")))


def words_of(message: AnyMessage) -> str:
    """Return the text of a message, with a word on a line of its own for each part that is not text."""
    content = message.content or ""
    parts = [content] if isinstance(content, str) else words_of_parts(content)
    if isinstance(message, AIMessage) and message.refusal:
        parts.append(f"[refusal] {message.refusal}")
    return "\n".join(part for part in parts if part)


def words_of_parts(content: Iterable[ContentPart]) -> list[str]:
    """Return text parts that follow each other as one text, and a word for each other part."""
    words: list[str] = []
    for is_text, parts in groupby(content, key=lambda part: isinstance(part, TextPart)):
        group = list(map(words_of_part, parts))
        words += [join_text_parts(group)] if is_text else group
    return words


def words_of_part(part: ContentPart) -> str:
    """Return the text of a part of a message, or a word for what it is."""
    match part:
        case ImagePart():
            url = part.image_url.url
            return "[image]" if url.startswith("data:") else f"[image {one_line(url)}]"
        case AudioPart():
            return "[audio]"
        case FilePart():
            name = part.file.filename or part.file.file_id
            return f"[file {one_line(name)}]" if name else "[file]"
        case RefusalPart():
            return f"[refusal] {part.refusal}"
        case _:
            return part.text


def _evidence(failure: Failure) -> Iterator[Labelled]:
    """Yield some lines of the details: for a crash the last ones, which name the error, else the first ones."""
    lines = [line.rstrip() for line in safe(failure.evidence or "").splitlines() if line.strip(" ^~")]
    excerpt = lines[-EVIDENCE_LINES:] if failure.kind == "crash" else lines[:EVIDENCE_LINES]
    cut = [f"… ({len(lines) - len(excerpt)} more lines)"] if len(excerpt) < len(lines) else []
    for line in [*cut, *excerpt] if failure.kind == "crash" else [*excerpt, *cut]:
        yield Labelled(Text(" " * 6), Text(line if len(line) <= 160 else f"{line[:159]}…", style="dim"))


def asked_text(message: AnyMessage) -> str:
    """Return a message of a request as text."""
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    return "\n".join(filter(None, (words_of(message), *(f"{call.name}({call.function.arguments})" for call in calls))))


def replied_text(call: JudgeCall) -> str:
    """Return the reply of a call as text; one that calls tools, too."""
    tools = (f"{tool_call.name}({tool_call.function.arguments})" for tool_call in call.tool_calls)
    return "\n".join(filter(None, (call.text or "", *tools)))


def about(call: JudgeCall) -> str:
    """Return which turns a call is about, in words, empty where that is not known."""
    if call.first_turn is None or call.last_turn is None:
        return ""
    return turn_span(range(call.first_turn, to_number(call.last_turn)))


def facts(call: JudgeCall) -> list[tuple[str, str]]:
    """Return who answered, when, and what it took."""
    rows = [("model", safe(call.model))]
    if call.trial:
        rows.append(("repetition", str(to_number(call.trial))))
    if call.usage is not None:
        rows.append(("used", usage_text(call.usage)))
        if call.usage.calls > 1:
            rows.append(("requests", f"{call.usage.calls:,}"))
    if mode := call.applied.get("mode"):
        rows.append(("output mode", safe(str(mode))))
    if read := call.applied.get("read"):
        rows.append(("repairs", safe(str(read))))
    if call.asked_at is not None:
        rows.append(("answered", f"{day(call.asked_at)}, {clock(call.asked_at)}"))
        rows.append(("from the cache", "yes: nothing was spent for this score" if call.cached else "no"))
    return rows


def exchange_lines(exchange: JudgeExchange) -> Group:
    """Return an exchange for the terminal: each call with its request and its reply in full."""
    return Group(*_lines(exchange))


def _lines(exchange: JudgeExchange) -> Iterator[RenderableType]:
    if exchange.missing or not exchange.calls:
        yield Text(f"What the judge of {safe(exchange.grader)} was asked cannot be shown: {safe(exchange.missing)}")
    for number, call in enumerate(exchange.calls):
        where = f", {about(call)}" if about(call) else ""
        yield Text(f"── call {to_number(number)} of {len(exchange.calls)}{where}", style="dim")
        yield Text(" · ".join(f"{what} {much}" for what, much in facts(call)), style="dim")
        for message in (*call.messages, *call.repair):
            yield Labelled(Text(f"{message.role:>9}  ", style="bold"), Text(safe(asked_text(message))))
        reply = "no reply is stored: this call failed" if call.text is None else safe(replied_text(call))
        yield Labelled(Text(f"{'reply':>9}  ", style="bold cyan"), Text(reply))
