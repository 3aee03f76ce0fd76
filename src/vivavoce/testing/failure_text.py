"""A conversation that did not pass, in words: the turn, what was said, why, and the command that shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, conversation_label, turn_title
from vivavoce.records.trajectory import Turn
from vivavoce.report.graded_run import show_command
from vivavoce.report.text import inert, one_line
from vivavoce.report.transcript import words_of
from vivavoce.report.verdict import score_text
from vivavoce.report.worst_samples import why

TURNS = 3
"""Turns of a conversation that are shown."""
WIDTH = 400
"""Characters of a message that are shown."""


def all_scores(outcome: Outcome) -> dict[str, Score]:
    """Return the scores of an outcome by name, the reward among them."""
    return {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}


def missed_scores(outcome: Outcome, only_warn: Collection[str] = ()) -> dict[str, Score]:
    """Return the scores that did not pass, without those of the graders that `only_warn`."""
    scores = all_scores(outcome).items()
    return {name: score for name, score in scores if score.passed is False and name not in only_warn}


def decides(outcome: Outcome) -> bool:
    """Return whether a score passes, fails, or is an error; a measurement and a skipped score decide nothing."""
    return any(score.passed is not None or score.state == "error" for score in all_scores(outcome).values())


def error_scores(outcome: Outcome) -> dict[str, Score]:
    """Return the scores that are an error."""
    return {name: score for name, score in all_scores(outcome).items() if score.state == "error"}


def reason_line(scores: Mapping[str, Score]) -> str:
    """Return in one line why scores are what they are."""
    return "; ".join(why(name, score) for name, score in scores.items())


def name_of(outcome: Outcome) -> str:
    """Return what a conversation is called in its run."""
    return conversation_label(outcome.attempt.key.sample_id, outcome.attempt.key.trial)


def missed_text(outcome: Outcome, run_id: str, options: Sequence[str], only_warn: Collection[str] = ()) -> str:
    """Return what did not pass: first one line, then the turns with their words, then the command.

    The graders that `only_warn` are left out.
    """
    scores = missed_scores(outcome, only_warn)
    lines = [reason_line(scores), ""]
    turns = {turn.index: turn for turn in outcome.attempt.trajectory.turns}
    notes = _notes(scores, max(turns, default=None))
    for index in sorted(notes, key=lambda note: -1 if note is None else note)[:TURNS]:
        lines += _turn(turns.get(index) if index is not None else None, index, notes[index])
    if len(notes) > TURNS:
        lines.append(f"and {len(notes) - TURNS} more turns")
    lines.append(_shown_by(outcome, run_id, options))
    return inert("\n".join(lines))


def broken_text(outcome: Outcome, run_id: str, options: Sequence[str]) -> str:
    """Return why a conversation could not be judged; that is an error, and says nothing about the conversation."""
    failure = outcome.attempt.failure
    lines = [f"{name}: {score.failure or score.reason}" for name, score in error_scores(outcome).items()]
    first = f"could not be held: {failure}" if failure is not None else f"could not be judged: {lines[0]}"
    more = [] if failure is not None else [one_line(line, WIDTH) for line in lines[1:]]
    return inert("\n".join([one_line(first, 2 * WIDTH), *more, _shown_by(outcome, run_id, options)]))


def _shown_by(outcome: Outcome, run_id: str, options: Sequence[str]) -> str:
    return f"the whole conversation: {show_command(run_id, name_of(outcome), options)}"


def _notes(scores: Mapping[str, Score], last: int | None) -> dict[int | None, list[str]]:
    """Return by turn what did not pass there; what is about no single turn stands with the last one."""
    notes: dict[int | None, list[str]] = {}
    for name, score in scores.items():
        for turn, line in _of_score(name, score, last):
            notes.setdefault(turn, []).append(line)
    return notes


def _of_score(name: str, score: Score, last: int | None) -> Iterator[tuple[int | None, str]]:
    if turns := [turn for turn in score.turns or () if turn.passed is False]:
        yield from ((turn.turn, _line(name, turn, turn.reason or "")) for turn in turns)
        return
    against = [finding for finding in score.findings if finding.state in ("fail", "partial")]
    for finding in against:
        observed = finding.data.get("found")
        verdict = f"{finding.verdict.replace('_', ' ')}: {finding.what}"
        text = f"{finding.what}: {observed}" if isinstance(observed, str) else verdict
        yield (last if finding.turn is None else finding.turn), _line(name, score, text)
    if not against:
        yield last, _line(name, score, score.reason or "")


def _line(name: str, score: Score, text: str) -> str:
    return f"  ✗ {one_line(name)} {score_text(score)}  {one_line(text, WIDTH)}".rstrip()


def _turn(turn: Turn | None, index: int | None, notes: Sequence[str]) -> Iterator[str]:
    if turn is not None:
        yield f"  {turn_title(index, turn.mark)}"
        for message in turn.messages:
            yield from _message(message)
    yield from notes
    yield ""


def _message(message: AnyMessage) -> Iterator[str]:
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    words = words_of(message)
    if words or not calls:
        yield f"  {message.role:>9}  {one_line(words or '(no text)', WIDTH)}"
    for call in calls:
        yield f"  {message.role:>9}  → {one_line(f'{call.name}({call.function.arguments})', WIDTH)}"
