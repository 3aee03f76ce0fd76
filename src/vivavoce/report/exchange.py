"""What was asked and what the target said, in one line each: beside a score that did not pass."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.messages import HumanMessage
from vivavoce.records.run import Attempt
from vivavoce.records.score import Score
from vivavoce.records.trajectory import assistant_texts, tool_calls
from vivavoce.report.text import one_line

WIDTH = 120
"""Characters of a question and of an answer at most."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of the user and the answer, shortened and safe to show; empty where nothing was said.

    `session` says in which one, where users come back in several.
    """

    question: str
    answer: str
    session: str = ""

    def __str__(self) -> str:
        words = f"“{self.question}” → {f'“{self.answer}”' if self.answer else 'no answer'}"
        return f"{self.session}: {words}" if self.session else words

    @property
    def asked(self) -> str:
        """What stands before the question."""
        return f"asked in {self.session}" if self.session else "asked"


def exchange_of(attempt: Attempt, score: Score | None = None) -> Exchange | None:
    """Return the exchange that a score is about: its lowest turn, else the last; None where nobody said anything.

    An answer that only calls tools is told by their names.
    """
    turns = attempt.trajectory.turns
    wanted = None if score is None else lowest_turn(score)
    turn = next((one for one in turns if one.index == wanted), turns[-1] if turns else None)
    if turn is None:
        return None
    question = " ".join(one.text for one in turn.messages if isinstance(one, HumanMessage))
    answer = " ".join(assistant_texts(turn.messages))
    if not answer and (calls := tool_calls(turn.messages)):
        answer = f"calls {', '.join(call.name for call in calls)}"
    session = "" if turn.mark is None else one_line(turn.mark.label, WIDTH)
    return Exchange(one_line(question, WIDTH), one_line(answer, WIDTH), session)


def lowest_turn(score: Score) -> int | None:
    """Return the turn with the lowest value, else that of the first finding against it, None where no turn has one."""
    values = [(turn.value, turn.turn) for turn in score.turns or () if turn.value is not None and turn.turn is not None]
    if values:
        return min(values)[1]
    return next((one.turn for one in score.findings if one.state == "fail" and one.turn is not None), None)
