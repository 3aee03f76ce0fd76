"""`Fork`: what a run is a fork of, the places from which it continues, and the forks of a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from vivavoce.extensions import RunDescription
from vivavoce.lazy_names import lazy
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.records.run import AttemptKey, Listener, Run, Status, reading_record
from vivavoce.records.score import conversation_label, shorten, to_index, to_number
from vivavoce.records.trajectory import Turn, assistant_texts, tool_calls
from vivavoce.store.store import Store

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vivavoce.run.experiment_run import ExperimentRun
    from vivavoce.run.options import RunOptions

FORK = "fork"
"""The option of a run under which its fork is stored."""

_FROM_TURN = re.compile(r"(.*)@(\d{1,9})", re.DOTALL | re.ASCII)


class Fork(BaseModel):
    """What was gone on from: a conversation of a run, and its turn, counted from 0; None where all were tried.

    With `user` the user says that in this turn, with `assistant` the target's reply in it is that. `grader` is the one
    whose score says whether a continuation succeeded, and `trials` how many there are at most. The conversation can be
    gone on from the beginning of its first `turns` turns, and `ended_well` is what the grader said of it as it was
    held, None where it said nothing. `by` is another target that goes on, None where it is the same.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    sample: str
    target: str
    trial: int
    turn: int | None = None
    user: str | None = None
    assistant: str | None = None
    grader: str
    trials: int
    turns: int
    ended_well: bool | None = None
    by: str | None = None

    @property
    def of(self) -> str:
        """The conversation, as a command names it."""
        return f"{self.run}/{conversation_label(self.sample, self.trial)}"

    @property
    def words(self) -> str:
        """What the run is, such as `fork of RUN/SAMPLE from turn 3`."""
        turn = "each turn" if self.turn is None else f"turn {to_number(self.turn)}"
        speaker = "the user" if self.user is not None else "the target" if self.assistant is not None else None
        other = "" if speaker is None else f", where {speaker} says: {shorten((self.user or self.assistant or ''), 60)}"
        by = "" if self.by is None else f", with {self.by}"
        return f"fork of {self.of} from {turn}{other}{by}"

    @property
    def starts(self) -> list[int]:
        """The turns from which it goes on, counted from 0."""
        return list(range(self.turns)) if self.turn is None else [self.turn]


def fork_of(run: Run) -> Fork | None:
    """Return what a run is a fork of, None for any other run."""
    stored = run.options.get(FORK)
    with reading_record(run, f"options.{FORK}"):
        return None if stored is None else Fork.model_validate(stored)


def describe_fork(run: Run) -> RunDescription | None:
    """Describe a fork by the conversation and the turn that it continues."""
    fork = fork_of(run)
    return fork and RunDescription(fork.words, f"fork that conversation again with: viva runs fork {fork.of}")


def resume_fork(
    run: Run, options: RunOptions, store: Store, listeners: Sequence[Listener], errors: bool
) -> ExperimentRun | None:
    """Return an interrupted fork, ready to continue; None for any other run."""
    if (fork := fork_of(run)) is None:
        return None
    return lazy("vivavoce.features.forks.experiment:resume_fork")(
        run, fork, options, store=store, listeners=listeners, errors=errors
    )


def report_of_run(store: Store, run: Run) -> list[RenderableType]:
    """Return what a fork shows so far; nothing for any other run."""
    return [] if fork_of(run) is None else lazy("vivavoce.features.forks.report:stored_fork_report")(store, run)


def start_id(sample: str, turn: int) -> str:
    """Return the id of the sample whose conversations continue with a turn, counted from 0: `refund@3` for turn 2."""
    return f"{sample}@{to_number(turn)}"


def start_of(sample_id: str) -> int:
    """Return the turn, counted from 0, with which the conversations of such a sample go on.

    Raises:
        ValueError: it is not such an id.
    """
    match = _FROM_TURN.fullmatch(sample_id)
    if match is None:
        raise ValueError(f"'{sample_id}' does not name the turn that it continues from")
    return to_index(int(match[2]))


def held_before(fork: Fork, turns: Sequence[Turn], turn: int) -> list[Turn]:
    """Return the turns of a conversation that are held already where a fork continues with this turn of it.

    With another reply of the target the turn itself is one of them.
    """
    before = list(turns[:turn])
    if fork.assistant is None:
        return before
    return [*before, Turn(index=turn, messages=[turns[turn].user_message, AIMessage(content=fork.assistant)])]


def same_turns(turns: Sequence[Turn], again: Sequence[Turn]) -> bool:
    """Return whether the turns that were held are also what came of saying them again: words and calls alike."""
    return len(turns) <= len(again) and all(
        _texts_and_calls(left.messages) == _texts_and_calls(right.messages)
        for left, right in zip(turns, again, strict=False)
    )


def _texts_and_calls(messages: Sequence[AnyMessage]) -> tuple[list[str], list[tuple[str, str]]]:
    calls = [(call.name, call.function.arguments) for call in tool_calls(messages)]
    return [text.strip() for text in assistant_texts(messages)], calls


class ListedFork(BaseModel):
    """A run that goes on from a conversation of another one; `words` say from which and where."""

    model_config = ConfigDict(frozen=True)

    run: str
    status: Status
    started_at: float
    fork: Fork
    words: str


def forks_of(store: Store, run_id: str, key: AttemptKey | None = None) -> list[ListedFork]:
    """Return the forks of the conversations of a run, or of one of them, the oldest first."""
    forks: list[ListedFork] = []
    for run in store.browse.parts_of(run_id):
        fork = fork_of(run)
        if fork is None or (key is not None and key != (fork.sample, fork.target, fork.trial)):
            continue
        fields = {"run": run.id, "status": run.status, "started_at": run.started_at, "fork": fork, "words": fork.words}
        forks.append(ListedFork.model_validate(fields))
    return forks


def fork_lines(store: Store, run: Run, key: AttemptKey, options: Sequence[str] = ()) -> list[str]:
    """Return a line for each fork of a conversation, with the command that shows it."""
    return [
        f"{fork.words}: {shlex.join(['viva', 'show', fork.run, *options])}" for fork in forks_of(store, run.id, key)
    ]
