"""The agreement of people with each other, apart from the store because it needs numpy, which takes long to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vivavoce.records.label import Decision, Disputed, HumanVerdict, Label, LabelAgreement, PeopleAgreement
from vivavoce.records.run import AttemptKey
from vivavoce.stats.agreement import agreement
from vivavoce.stats.raters import Counts, counts_of, fleiss, krippendorff, krippendorff_interval
from vivavoce.store.labels.decisions import decided
from vivavoce.store.labels.labels import LISTED, Paired, agreement_with


def agreement_of_all(pairs: Sequence[Paired], decisions: Sequence[Decision] = ()) -> LabelAgreement:
    """Return the agreement of a judge with labels, and of their authors with each other.

    Where there is a decision, the judge is compared with it in place of the labels.
    """
    people, compared = people_agreement([pair.label for pair in pairs]), decided(pairs, decisions)
    number = sum(isinstance(one.label, Decision) for one in compared)
    return agreement_with(compared).model_copy(update={"people": people, "decided": number})


def people_agreement(labels: Sequence[Label]) -> PeopleAgreement | None:
    """Return the agreement between the authors of labels for one grader, None where no place has labels of two."""
    places: dict[tuple[AttemptKey, int | None], dict[str, HumanVerdict]] = {}
    for label in labels:
        if label.verdict != "unsure":
            places.setdefault((label.key, label.turn), {})[label.author] = label.verdict
    several = {place: verdicts for place, verdicts in places.items() if len(verdicts) > 1}
    if not several:
        return None
    counts = counts_of([list(verdicts.values()) for verdicts in several.values()], ("pass", "fail"))
    people = sorted({author for verdicts in several.values() for author in verdicts})
    differing = [(place, verdicts) for place, verdicts in several.items() if len(set(verdicts.values())) > 1]
    low, high = krippendorff_interval(counts, [key.sample_id for key, _ in several]) or (None, None)
    return PeopleAgreement(
        people=people,
        n=len(several),
        same=len(several) - len(differing),
        alpha=krippendorff(counts),
        low=low,
        high=high,
        kappa=_cohen(people, list(several.values())) if len(people) == 2 else _fleiss(counts, people),
        disputed=[Disputed(**key._asdict(), turn=turn, verdicts=said) for (key, turn), said in differing[:LISTED]],
    )


def _cohen(people: Sequence[str], verdicts: Sequence[Mapping[str, HumanVerdict]]) -> float | None:
    one, other = ([said[author] == "pass" for said in verdicts] for author in people)
    # of two people neither is the truth: there is a kappa if either gave both verdicts
    found = agreement(one, other).kappa
    return agreement(other, one).kappa if found is None else found


def _fleiss(counts: Counts, people: Sequence[str]) -> float | None:
    return fleiss(counts) if (counts.sum(axis=1) == len(people)).all() else None
