"""Realism: the users of a run next to real ones, for every report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.features.realism.change import Change, compare_runs
from vivavoce.features.realism.differences import FeatureDifference, feature_differences
from vivavoce.features.realism.features import ENGLISH
from vivavoce.features.realism.kinds import Kind, kinds_of
from vivavoce.features.realism.measuring import Both, languages_of, usual_language
from vivavoce.features.realism.reading import UserSides
from vivavoce.features.realism.telling_apart import (
    SAME,
    Apart,
    by_manner,
    by_meaning,
    chosen_for_meaning,
    text_to_embed,
)
from vivavoce.features.realism.unlike import Unlike, least_likely, least_resembled
from vivavoce.features.realism.wording import sentence
from vivavoce.models.embedder import Vector, as_embedder, vectors_of
from vivavoce.pacing.loops import wait_for
from vivavoce.report.text import count

WITHOUT = "none"
"""What stands for no embedder."""
LOCAL = "local"
_MAX_NAMED = 3


class Side(BaseModel):
    """One side of a comparison: its name, its conversations, and how many of them are in which language."""

    model_config = ConfigDict(frozen=True)

    name: str
    conversations: int
    languages: dict[str, int]


class Realism(BaseModel):
    """How like real users the users of a run are, in one record that every reader shows.

    `finding` is the answer in a sentence. `apart` has a classifier by manner, and one by meaning as well where an
    embedder is there. `features` come with those that differ first. `change` compares with an earlier run, where one
    was named; the whole record is then about the held-back half of the real conversations.
    """

    model_config = ConfigDict(frozen=True)

    simulated: Side
    real: Side
    held_back: bool = False
    finding: str
    notes: list[str]
    apart: list[Apart]
    features: list[FeatureDifference]
    least_likely: list[Unlike]
    least_resembled: list[Unlike]
    kinds: list[Kind]
    change: Change | None = None


def realism(
    simulated: UserSides,
    real: UserSides,
    *,
    earlier: UserSides | None = None,
    embedder: str | None = None,
    options: Sequence[str] = (),
) -> Realism:
    """Compare the users of a run with real ones.

    With `earlier`, an earlier run of the same suite, only the held-back half of the real conversations counts: nothing
    was fitted to it. `embedder` is a name, or `none`; None is the local one, if it is installed. `options` are those
    that `viva show` needs to find the run.

    Raises:
        UsageError: the embedder has no known form, or no real conversation is held back.
        ModelFault: the embedder failed.
    """
    if earlier is not None:
        real = _held_back(real)
    both = Both(simulated, real)
    manner = by_manner(both)
    is_skipped = embedder is None and manner.scored is None
    meaning, why_not = _meaning(both, WITHOUT if is_skipped else embedder)
    apart = [manner.apart, *meaning]
    features = feature_differences(both)
    scored = manner.scored
    return Realism(
        simulated=_side(simulated),
        real=_side(real),
        held_back=earlier is not None,
        finding=_finding(apart[0], features),
        notes=[*both.notes(), *why_not],
        apart=apart,
        features=features,
        least_likely=[] if scored is None else least_likely(both, scored, tuple(options)),
        least_resembled=[] if scored is None else least_resembled(both, scored),
        kinds=kinds_of(both),
        change=None if earlier is None else compare_runs(earlier, both, manner.apart),
    )


def _held_back(real: UserSides) -> UserSides:
    part = real.only(held_back=True)
    if not part.sides:
        raise UsageError(
            f"{real.name}: none of its {len(real.sides)} conversations is in the held-out half; add more conversations"
        )
    return part


def _side(users: UserSides) -> Side:
    return Side(name=users.name, conversations=len(users.sides), languages=dict(languages_of(users)))


def _finding(manner: Apart, features: Sequence[FeatureDifference]) -> str:
    if manner.note == SAME:
        return f"nothing to compare: {SAME}"
    telling = [sentence(feature) for feature in features if feature.differs]
    most = "; ".join(telling[:_MAX_NAMED])
    number = f"{len(telling)} of {count(len(features), 'feature')} {'differs' if len(telling) == 1 else 'differ'}"
    if manner.can_tell:
        return f"simulated users do not write like real ones: {most or 'no single feature differs beyond chance'}"
    rest = f"{number} beyond chance: {most}" if telling else "no feature differs beyond chance"
    if manner.can_tell is None:
        return f"too few to say whether simulated users write like real ones; {rest}"
    return f"a simple classifier cannot tell simulated users from real ones by how they are written; {rest}"


def _meaning(both: Both, name: str | None) -> tuple[list[Apart], list[str]]:
    """Return what an embedder adds, nothing without one, and why there is none."""
    if name == WITHOUT:
        return [], []
    try:
        opened = as_embedder(name or LOCAL)
    except (MissingExtra, UsageError):
        if name is not None:
            raise
        return [], ["topics are not compared: the local embedder needs vivavoce[embed]"]
    if name is None and {usual_language(both.simulated), usual_language(both.real)} != {ENGLISH}:
        return [], ["topics are not compared: the local embedder knows only English; name another embedder"]
    selection = chosen_for_meaning(both)
    texts = [text_to_embed(both.sides[place].messages) for place in np.flatnonzero(selection)]

    async def embed() -> Sequence[Vector]:
        try:
            return await vectors_of(opened, texts)
        finally:
            await opened.close()

    return [by_meaning(both, selection, np.array(wait_for(embed()), dtype=np.float64))], []
