"""Both sides of a comparison, measured: a row of features for each conversation, and in which language it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vivavoce.features.realism.features import ENGLISH, FEATURES, measure
from vivavoce.features.realism.reading import UserSides
from vivavoce.features.realism.user_side import MAX_CHARS, UserSide
from vivavoce.metrics.exact.language import language_of
from vivavoce.report.text import count
from vivavoce.stats.resampling import Floats

UNKNOWN = "too short to detect"
"""What stands for the language of a conversation with too few letters."""
TOGETHER = 100
"""Conversations whose language is detected together, where none is long enough alone."""

_NEED_ENGLISH = len([feature for feature in FEATURES if feature.english])


@dataclass(frozen=True)
class Both:
    """Simulated and real conversations, the simulated ones first, with their features."""

    simulated: UserSides
    real: UserSides

    @cached_property
    def sides(self) -> list[UserSide]:
        """All conversations."""
        return [*self.simulated.sides, *self.real.sides]

    @cached_property
    def is_simulated(self) -> NDArray[np.bool_]:
        """Which of them are simulated."""
        return np.arange(len(self.sides)) < len(self.simulated.sides)

    @cached_property
    def clusters(self) -> list[str]:
        """What each came of; conversations in which users say the same on both sides go together."""
        both = {side.content for side in self.simulated.sides} & {side.content for side in self.real.sides}
        return [side.content if side.content in both else side.cluster for side in self.sides]

    @cached_property
    def same(self) -> int:
        """How many simulated conversations have a real one in which the user says exactly the same."""
        real = {side.content for side in self.real.sides}
        return len([side for side in self.simulated.sides if side.content in real])

    @cached_property
    def rows(self) -> Floats:
        """The features of all conversations."""
        return measure(self.sides, [*_are_english(self.simulated), *_are_english(self.real)])

    def notes(self) -> Iterator[str]:
        """Yield what a reader has to know of both sides."""
        yield from (*self.simulated.notes, *self.real.notes)
        simulated, real = usual_language(self.simulated), usual_language(self.real)
        if simulated and real and simulated != real:
            yield (
                f"simulated users write {simulated} and real ones {real}: most differences may come from the "
                "languages; compare users of one language"
            )
        for what, users in (("simulated", self.simulated), ("real", self.real)):
            if others := _are_english(users).count(False):
                yield (
                    f"not known to be English: {others:,} of {count(len(users.sides), what + ' conversation')}, where "
                    f"the {_NEED_ENGLISH} features that need English words are not measured"
                )
        if self.same:
            yield (
                f"in {self.same:,} of {count(len(self.simulated.sides), 'simulated conversation')} the user "
                "writes exactly what a real user wrote"
            )


def _are_english(users: UserSides) -> list[bool]:
    """Return which conversations are English; one whose language is not told is taken for what most others are in."""
    usual = usual_language(users)
    return [(side.language or usual) == ENGLISH for side in users.sides]


def languages_of(users: UserSides) -> Mapping[str, int]:
    """Return how many conversations of one side are in which language, the most frequent first."""
    return dict(Counter(side.language or UNKNOWN for side in users.sides).most_common())


def usual_language(users: UserSides) -> str | None:
    """Return the language of most conversations; where each is too short to tell, that of many together."""
    counter = Counter(side.language for side in users.sides if side.language is not None)
    if counter:
        return counter.most_common(1)[0][0]
    return language_of(" ".join(message for side in users.sides[:TOGETHER] for message in side.messages)[:MAX_CHARS])
