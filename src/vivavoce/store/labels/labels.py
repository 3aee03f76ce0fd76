"""Labels of people: who gave them, and what they say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, and_, delete, func, select

from vivavoce.errors import NotFound
from vivavoce.records.label import (
    Decision,
    Disputed,
    HumanVerdict,
    Label,
    LabelAgreement,
    LabelledVerdict,
    PeopleAgreement,
)
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.stats.agreement import agreement
from vivavoce.stats.raters import Counts, counts_of, fleiss, krippendorff, krippendorff_interval
from vivavoce.store.access.audit import note
from vivavoce.store.browse.keyset import encode_cursor, read_place
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.database.database import Database
from vivavoce.store.database.schema import attempts, labels, scores
from vivavoce.store.labels.agreement import LISTED, Paired, agreement_with, paired
from vivavoce.store.labels.decisions import decided
from vivavoce.store.labels.queues import MOST, GraderScores, drawn_in
from vivavoce.store.labels.rows import (
    LabelPlace,
    attempt_number,
    change_of,
    found_label,
    is_graded,
    label_of,
    label_query,
    labelled_attempt,
    of_run,
    put_label,
)
from vivavoce.store.webhooks.outbox import tell


def agreement_of_all(pairs: Sequence[Paired], decisions: Sequence[Decision] = ()) -> LabelAgreement:
    """Return the agreement of a judge with labels, and of their authors with each other.

    Where there is a decision, the judge is compared with it in place of the labels.
    """
    people, compared = people_agreement([one.label for one in pairs]), decided(pairs, decisions)
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


BATCH = 500


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a store."""

    database: Database

    def set(self, run_id: str, label: Label, *, queue: str | None = None) -> Label | None:
        """Store a label, and return the earlier label of the same author that it replaces.

        `queue` is the queue of its author in which it is given: where that one is blind, the label is of a conversation
        that was drawn as the queue says.

        Raises:
            UsageError: there is no such conversation, turn, grader or queue.
            StoreError: the store cannot be written.
        """
        place = LabelPlace.of(run_id, label)
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            if label.grader and not is_graded(connection, attempt_id, label.grader):
                raise NotFound("grader", label.grader, within=f"the scores of sample '{label.sample_id}'")
            if queue is not None:
                label = label.model_copy(update={"drawn": drawn_in(connection, queue, attempt_id, label)})
            before = put_label(connection, attempt_id, place, label)
            note(connection, label.author, "label.set", place.subject, change_of(label, before))
            tell(connection, "label.saved", {"run": run_id, "label": label.model_dump()})
        return before

    def remove(self, place: LabelPlace) -> Label:
        """Remove a label, and return it.

        Raises:
            UsageError: there is no such label.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            found = found_label(connection, attempt_id, place)
            if found is None:
                raise NotFound("label", place.author, message=f"{place.author} has no label here")
            connection.execute(delete(labels).where(labels.c.id == found.id))
            note(connection, place.author, "label.remove", place.subject, change_of(label_of(found)))
        return label_of(found)

    def of(self, run_id: str, key: AttemptKey) -> list[Label]:
        """Return the labels of a conversation and of its turns, oldest first.

        Raises:
            UsageError: there is no such conversation.
        """
        with self.database.connected() as connection:
            attempt_id = labelled_attempt(connection, LabelPlace(run_id, key, None, "", ""), hold=False)
            query = label_query().where(labels.c.attempt_id == attempt_id).order_by(labels.c.created_at, labels.c.id)
            return list(map(label_of, connection.execute(query)))

    def page(
        self,
        run_id: str,
        *,
        grader: str | None = None,
        author: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> LabelPage:
        """Return some labels of a run in the order in which they were first set.

        Raises:
            UsageError: `after` is not a cursor of this list.
        """
        query = label_query().add_columns(labels.c.id).limit(limit + 1)
        if after is not None:
            query = query.where(labels.c.id > read_place(after, int)[0])
        with self.database.connected() as connection:
            found = connection.execute(of_run(query, run_id, grader, author)).all()
        page = found[:limit]
        following = encode_cursor((page[-1].id,)) if len(found) > limit else None
        return LabelPage(labels=list(map(label_of, page)), next=following)

    def all(self, run_id: str, *, grader: str | None = None, author: str | None = None) -> Iterator[Label]:
        """Yield every label of a run, a page at a time."""
        after: str | None = None
        while True:
            page = self.page(run_id, grader=grader, author=author, after=after, limit=BATCH)
            yield from page.labels
            after = page.next
            if after is None:
                return

    def labelled(self, author: str) -> dict[tuple[str, str], int]:
        """Return how many conversations an author has labelled, by run and grader."""
        a, mine = attempts.c, labels.c
        query = select(a.run_id, mine.grader, func.count(mine.attempt_id.distinct()).label("number")).select_from(
            labels
        )
        query = query.join(attempts, a.id == mine.attempt_id).group_by(a.run_id, mine.grader)
        with self.database.connected() as connection:
            rows = connection.execute(query.where(mine.author == author))
            return {(row.run_id, row.grader): row.number for row in rows}

    def paired(self, grading: Grading, grader: str, *, author: str | None = None, turns: bool = False) -> list[Paired]:
        """Return the labels for a grader, each with its score: of whole conversations, or of `turns`."""
        s, of_turn = scores.c, func.coalesce(labels.c.turn, -1)
        same = and_(
            s.attempt_id == labels.c.attempt_id,
            s.grading_id == grading.id,
            s.kind == "grade",
            s.name == labels.c.grader,
            func.coalesce(s.turn, -1) == of_turn,
        )
        query = label_query().add_columns(s.state, s.value, s.passed, s.confidence).outerjoin(scores, same)
        about = of_turn >= 0 if turns else of_turn < 0
        with self.database.connected() as connection:
            rows = connection.execute(of_run(query, grading.run_id, grader, author).where(about)).all()
        return [paired(row) for row in rows]

    def in_doubt(self, grading: Grading, grader: str, limit: int = MOST) -> list[AttemptKey]:
        """Return conversations that a grader has scored, uncertain ones first.

        These are the ones with split votes of a panel, the closest votes first; then those whose score is closest to
        the passing threshold.
        """
        with self.database.connected() as connection:
            return GraderScores(connection, grading, grader).in_doubt(limit)

    def at_random(self, grading: Grading, grader: str, seed: int, limit: int = MOST) -> list[AttemptKey]:
        """Return conversations that a grader has scored, in the order of the seed; without a grader, any."""
        with self.database.connected() as connection:
            return GraderScores(connection, grading, grader).at_random(seed, limit)


def copy_labels(source: Connection, target: Connection) -> int:
    """Copy the labels of conversations that the other store has, too, and return how many; the newer one stays."""
    copied = 0
    for row in source.execute(label_query().add_columns(attempts.c.run_id).order_by(labels.c.id)).all():
        label = label_of(row)
        place = LabelPlace.of(row.run_id, label)
        attempt_id = attempt_number(target, place, hold=True)
        if attempt_id is None:  # the conversation was added meanwhile, and comes with the next copy
            continue
        there = found_label(target, attempt_id, place)
        if there is None or there.created_at < label.created_at:
            before = put_label(target, attempt_id, place, label)
            note(target, label.author, "label.copy", place.subject, change_of(label, before))
            copied += 1
    return copied
