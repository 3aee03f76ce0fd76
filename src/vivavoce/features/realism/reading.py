"""The users' sides of all conversations of a file or of a stored run, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.features.realism.user_side import UserSide, user_side
from vivavoce.messages import AnyMessage
from vivavoce.records.score import conversation_label
from vivavoce.report.text import count
from vivavoce.samples.rows import check_samples, read_samples
from vivavoce.store.store import Store


@dataclass(frozen=True)
class UserSides:
    """The users' sides of the conversations of `name`, a file or a run; `run` is None of a file.

    `notes` say how a file was read and which conversations are left out.
    """

    name: str
    sides: Sequence[UserSide]
    notes: Sequence[str] = ()
    run: str | None = None

    def only(self, held_back: bool) -> UserSides:
        """Return one part of the conversations: those held back, or the others; see `UserSide.held_back`."""
        sides = [side for side in self.sides if side.held_back == held_back]
        return UserSides(self.name, sides, self.notes, self.run)


def spoken_in_file(path: Path, format: str | None = None) -> UserSides:  # noqa: A002
    """Read the conversations of a file in any format.

    Raises:
        UsageError: the file or a row cannot be read, or no conversation has a message of a user.
    """
    samples = check_samples(path, format=format, log=True)
    collector = _Collector(str(path))
    for sample in read_samples(path, format=format):
        name = conversation_label(sample.id, sample.trial or 0)
        if sample.messages is None:
            collector.left_out["without recorded messages"] += 1
        else:
            collector.add(name, sample.messages, sample.id if sample.trial else None)
    return collector.collect(samples.notes)


def spoken_in_run(store: Store, name: str) -> UserSides:
    """Read the conversations of a run; those that ended with an error are left out.

    Raises:
        UsageError: there is no such run, or no conversation in it has a message of a user.
    """
    run = store.run(name)
    collector = _Collector(f"run {run.id}", run.id)
    for attempt in store.attempts(run.id):
        if attempt.failure is not None:
            collector.left_out["that ended with an error"] += 1
        else:
            label = conversation_label(attempt.key.sample_id, attempt.key.trial)
            collector.add(label, attempt.trajectory.messages, attempt.key.sample_id)
    return collector.collect()


@dataclass
class _Collector:
    """Users' sides as they are read."""

    name: str
    run: str | None = None
    sides: list[UserSide] = field(default_factory=list[UserSide])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def add(self, name: str, messages: Sequence[AnyMessage], cluster: str | None) -> None:
        side = user_side(name, messages, cluster)
        if side is not None:
            self.sides.append(side)
        elif messages:
            self.left_out["without user text"] += 1
        else:
            self.left_out["without messages"] += 1

    def collect(self, notes: Sequence[str] = ()) -> UserSides:
        if not self.sides:
            why = "; ".join(f"{count(number, 'conversation')} {why}" for why, number in self.left_out.items())
            raise UsageError(
                f"{self.name}: no user message to compare: {why or 'it is empty'}; name a file or a run with "
                "user messages"
            )
        return UserSides(self.name, self.sides, (*notes, *self._left_out(), *self._one_speaker()), self.run)

    def _left_out(self) -> Iterator[str]:
        for why, number in self.left_out.items():
            yield f"{self.name}: left out: {count(number, 'conversation')} {why}"

    def _one_speaker(self) -> Iterator[str]:
        alone = len([side for side in self.sides if not any(side.before) and side.last[0] == "user"])
        if alone > len(self.sides) / 2:
            yield (
                f"{self.name}: {alone:,} of {count(len(self.sides), 'conversation')} have only user messages; "
                "features that depend on answers are not measured there"
            )
