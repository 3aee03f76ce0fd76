"""One conversation in the terminal: its messages and tool calls, the grades of each turn, and every failure once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

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
from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure, Score, State, turn_label, turn_title
from vivavoce.records.trajectory import Test, Turn, origin, outcome_of
from vivavoce.report.finding import failed_steps, findings, score_text
from vivavoce.report.tester import after_turn, discarded_title, ending, judgements, thoughts, try_title
from vivavoce.report.text import Labelled, one_line
from vivavoce.safe_text import safe

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
        yield from _discarded(talk.test)
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
            yield _line(name, grade, grade.reason or "")
            yield from findings(grade)
        elif failure in self._shown_failures:
            yield _line(name, grade, _again(grade))
        else:
            self._shown_failures.add(failure)
            yield _line(name, grade, str(failure))
            yield from _evidence(failure)


def _discarded(test: Test | None) -> Iterator[RenderableType]:
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
    counted = [turn for turn in grade.turns or () if turn.state != "skipped"]
    if not counted:
        return "see the error above"
    return f"{sum(turn.state == 'error' for turn in counted)} of {len(counted)} turns could not be graded"


def _line(name: str, grade: Score, why: str) -> Labelled:
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


def _message(message: AnyMessage, named: bool) -> Iterator[RenderableType]:
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    words = safe(words_of(message))
    agent = f"{one_line(message.name)}: " if named and message.role == "assistant" and message.name else ""
    label = Text(f"{message.role:>9}  ", style=_SPEAKERS[message.role])
    if words or not calls:
        known = _about(message) if isinstance(message, ToolMessage) else ""
        before = (f"({known}) " if known else "", "dim"), (agent, "bold")
        yield Labelled(label, Text.assemble(*before, words or "(no text)"))
    for i, call in enumerate(calls):
        made = Text.assemble(
            ("" if words else agent, "bold"),
            (f"{safe(call.name)}({one_line(call.function.arguments, 400)})", "magenta"),
        )
        beside = label if not words and i == 0 else _INDENT
        yield Labelled(Text.assemble(beside, ("→ ", "magenta")), made)


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
    shown = lines[-EVIDENCE_LINES:] if failure.kind == "crash" else lines[:EVIDENCE_LINES]
    cut = [f"… ({len(lines) - len(shown)} more lines)"] if len(shown) < len(lines) else []
    for line in [*cut, *shown] if failure.kind == "crash" else [*shown, *cut]:
        yield Labelled(Text(" " * 6), Text(line if len(line) <= 160 else f"{line[:159]}…", style="dim"))
