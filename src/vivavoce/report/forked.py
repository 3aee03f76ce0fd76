"""Reading what a fork shows from the store."""

from __future__ import annotations

from dataclasses import asdict

from vivavoce.errors import UsageError
from vivavoce.metrics.judged.first_failure import root_of
from vivavoce.records.fork import Fork, held_before, start_id
from vivavoce.records.run import Outcome, Run
from vivavoce.report.fork_finding import Answer, Forked, Place, sentences
from vivavoce.run.forking import Counts, count_outcome, held_outcome
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.turning_point import fall, fixed_trials, share_limits
from vivavoce.store.store import Store


def forked(store: Store, run: Run) -> Forked:
    """Return what a fork shows so far.

    Raises:
        UsageError: the run is none, or the conversation that it goes on from is not in the store any more.
    """
    fork = run.fork
    if fork is None:
        raise UsageError(f"run {run.id} is no fork; make one with: viva fork {run.id}/SAMPLE")
    origin = held_outcome(store, fork)
    counts = {turn: Counts() for turn in fork.starts}
    turns = {start_id(fork.sample, turn): turn for turn in counts}
    spent, errors = 0, list[str]()
    for outcome in store.outcomes(store.grading(run.id).id):
        turn = turns[outcome.attempt.key.sample_id]
        before = held_before(fork, origin.attempt.trajectory.turns, turn)
        count_outcome(counts[turn], outcome, before, fork.grader)
        spent += 1
        errors += _errors(outcome, fork.grader)
    places = [_place(fork, turn, one) for turn, one in counts.items()]
    tried = [one.tried for one in counts.values()]
    found = fall(tried) if fork.turn is None else None
    answer: Answer = "one_turn" if found is None else "seldom" if found.seldom else "fell" if found.turn else "unknown"
    root = root_of(origin.scores.values())
    made = Forked(
        run=run.id,
        fork=fork,
        status=run.status,
        answer=answer,
        turn=None if found is None or found.turn is None else found.turn - 1,
        places=places,
        spent=spent,
        fixed=None if found is None or found.turn is None else fixed_trials(tried, found.turn),
        judged_turn=None if root is None else root.turn,
        finding=[],
    )
    return made.model_copy(update={"finding": sentences(made, errors)})


def _errors(outcome: Outcome, grader: str) -> list[str]:
    score = outcome.reward if grader == "reward" else outcome.scores.get(grader)
    failure = outcome.attempt.failure or (None if score is None else score.failure)
    return [] if failure is None else [failure.message]


def _place(fork: Fork, turn: int, counts: Counts) -> Place:
    passed, tried = counts.tried
    fields = {"turn": turn, "sample": start_id(fork.sample, turn), **asdict(counts)}
    if not tried:
        return Place.model_validate(fields)
    low, high = share_limits(passed, tried)
    if fork.turn is not None:
        found = mean_interval([1.0] * passed + [0.0] * (tried - passed))
        low, high = (0.0, 1.0) if found is None else (found.low or 0.0, 1.0 if found.high is None else found.high)
    return Place.model_validate({**fields, "share": passed / tried, "low": low, "high": high})
