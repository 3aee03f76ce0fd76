"""What people say of each conversation that a judge scored: one answer each, however many people answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from vivavoce.records.label import Decision, LabelledVerdict, PeopleAgreement
from vivavoce.records.run import AttemptKey
from vivavoce.store.labels.agreement import Paired


@dataclass(slots=True)
class Truth:
    """Labels beside verdicts, and how many conversations are left out: see `Calibration`."""

    labels: list[LabelledVerdict] = field(default_factory=list[LabelledVerdict])
    unsure: int = 0
    split: int = 0
    unscored: int = 0
    people: PeopleAgreement | None = None


def truth_of(pairs: Sequence[Paired], decisions: Sequence[Decision] = ()) -> Truth:
    """Return one answer for each conversation: the decision where there is one, else what most people say.

    `pairs` are the labels of whole conversations for one grader, each with its score.
    """
    decided = {one.key: one for one in decisions if one.turn is None}
    places: dict[AttemptKey, list[Paired]] = {}
    for one in pairs:
        places.setdefault(one.label.key, []).append(one)
    found = Truth()
    for key, mine in places.items():
        counts = Counter(one.label.verdict for one in mine)
        score, passed = mine[0].score, mine[0].passed
        if key not in decided and not counts["pass"] + counts["fail"]:
            found.unsure += 1
        elif key not in decided and counts["pass"] == counts["fail"]:
            found.split += 1
        elif score is None or passed is None:
            found.unscored += 1
        else:
            said = decided[key].verdict == "pass" if key in decided else counts["pass"] > counts["fail"]
            drawn = [one.label.drawn for one in mine if one.label.drawn is not None]
            label = LabelledVerdict(
                **key._asdict(),
                good=said,
                passed=passed,
                score=score,
                confidence=mine[0].confidence,
                drawn=max(drawn, default=None),
                blind=all(one.label.blind for one in mine),
            )
            found.labels.append(label)
    return found
