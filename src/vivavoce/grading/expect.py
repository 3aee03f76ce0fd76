"""`expect`: whether what a row expects of its conversation came true, as a grader and as a metric."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from vivavoce.errors import GraderFault, SuiteFault, UsageError
from vivavoce.grading.asked import Asked, Judge, Unmeasured, fingerprints_of, procedures
from vivavoce.grading.assertions import Held, Scene, scene_of
from vivavoce.grading.expected import Expected, decided, expected_of, mean_held, read_expect
from vivavoce.grading.grader import Grader, Scope, fingerprint, graded
from vivavoce.grading.graders import Case, Grade
from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.evaluation import spent
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, ask_all
from vivavoce.models.names import DefaultJudge
from vivavoce.records.score import WARN, Evidence, Failure, Finding, Score, charge, failed, shorten, skipped, turn_label
from vivavoce.samples.sample import Sample
from vivavoce.validation import construct, copy_with
from vivavoce.work_time import counted_work

_SHOWN = 5
"""Misses that a reason names."""
_LONGEST = 300
"""Characters of an answer that a finding quotes."""


def expect(case: Case) -> Score | Awaitable[Score]:
    """Score the share of the row's own assertions (`expect`) that hold, by weight; it passes when all do."""
    return _ByJudge(None).score(case)


def judged_by(grader: Grader, asked: Mapping[str, Asked], judge: Judge | None) -> Grader:
    """Return a grader of assertions, which are a requirement, with the judge that it asks, None for none.

    `asked` is what rows ask of metrics.
    """
    by_judge = _ByJudge(judge, by_share=grader.threshold is not None)
    grader = replace(grader, severity="fail", score=by_judge.score)
    if not asked:
        return grader
    return replace(
        grader,
        fingerprint=fingerprint([grader.fingerprint, fingerprints_of(asked, judge)]),
        verdicts_on=by_judge.verdicts,
        waits=True,
    )


@dataclass(frozen=True, slots=True)
class _ByJudge:
    """Checks assertions, those that ask by this judge.

    Where a threshold says which share of them passes (`by_share`), no single miss decides.
    """

    judge: Judge | None
    by_share: bool = False

    def score(self, case: Case) -> Score | Awaitable[Score]:
        """Return the score of a case, to be waited for where metrics are asked."""
        if case.sample.expect is None:
            return skipped("the sample has no expect")
        try:
            every = expected_of(case.sample)
        except UsageError as error:
            raise SuiteFault(str(error), kind="options") from error
        scenes = {turn: scene_of(case.view, turn) for turn in {one.turn for one in every}}
        asked = [(one.turn, part) for one in every if scenes[one.turn] is not None for part in one.asked]
        return self._asked_score(case, every, scenes, asked) if asked else self._checked_score(every, scenes)

    def verdicts(self, sample: Sample) -> int:
        """Return how many calls the assertions of a row make."""
        if self.judge is None:
            return 0
        try:
            every = expected_of(sample)
        except UsageError:  # said where it is graded
            return 0
        return sum(part.calls(self.judge, one.turn, sample) for one in every for part in one.asked)

    def _checked_score(self, every: Sequence[Expected], scenes: Mapping[int | None, Scene | None]) -> Score:
        """Return the score of assertions, without those that cannot be decided where the row is missed anyway.

        Raises:
            GraderFault: one cannot be decided, and no other that fails the row is missed.
        """
        with counted_work() as check_time:

            def check(expected: Expected) -> _Checked:
                check_time()
                scene = scenes[expected.turn]
                return _Checked(expected, scene, None if scene is None else expected.assertion.held(scene))

            checked = decided(every, check, lambda result: not self.by_share and _fails(result))
        return _score([result for _, result in checked], every)

    async def _asked_score(
        self,
        case: Case,
        every: Sequence[Expected],
        scenes: Mapping[int | None, Scene | None],
        asked: Sequence[tuple[int | None, Asked]],
    ) -> Score:
        if self.judge is None and (unasked := next((part for _, part in asked if part.asks), None)):
            message = f"{unasked.wording} needs a judge: give a model, or set VIVAVOCE_JUDGE"
            raise GraderFault(message, kind="options")
        results = await ask_all(part.measured(case, turn, self.judge) for turn, part in asked)
        used = spent(results)
        for (turn, part), result in zip(asked, results, strict=True):
            scene = scenes[turn]
            assert scene is not None
            scene.results[id(part)] = result
        try:
            score = self._checked_score(every, scenes)
        except Unmeasured as open_one:
            turn = next(turn for turn, part in asked if part is open_one.asked)
            return failed(_named(open_one, turn), usage=used)
        except Exception as error:
            charge(error, used)
            raise
        settings = next((result.settings for result in results if result.settings), dict[str, Any]())
        return copy_with(score, {"usage": used, "settings": settings})


def _named(error: Unmeasured, turn: int | None) -> Failure:
    """Return the failure of an assertion, which says of which."""
    place = "" if turn is None else f"{turn_label(turn)}: "
    return error.failure.model_copy(update={"message": f"{place}{error.asked.wording}: {error.failure.message}"})


class _Checked(NamedTuple):
    """An assertion and what came of it, both None for a turn that was not held."""

    expected: Expected
    scene: Scene | None
    result: Held | None


def _fails(one: _Checked) -> bool:
    return one.result is not None and not one.result.passed and one.expected.assertion.severity == "fail"


def _score(every: Sequence[_Checked], written: Sequence[Expected]) -> Score:
    """Return the score of the assertions that could be decided; `written` are all of the row."""
    findings = tuple(_finding(one) for one in every)
    parts = [(one.expected.assertion, one.result) for one in every if one.result is not None]
    if not parts:
        return skipped("the conversation ended before the turns that the row expects something of", findings=findings)
    missed = [one for one in every if one.result is not None and not one.result.passed]
    required, warnings = [one for one in missed if _fails(one)], [one for one in missed if not _fails(one)]
    hold = len(parts) - len(missed)
    reason = _misses(required) if required else f"{hold} of {len(parts)} assertions hold"
    if warnings:
        reason += f"; only a warning: {_misses(warnings)}"
    if unchecked_ones := len(every) - len(parts):
        reason += f"; {unchecked_ones} not checked, because the conversation ended before"
    decided_ones = {id(one.expected) for one in every}
    undecided = [one.assertion for one in written if id(one) not in decided_ones]
    if undecided:
        reason += f"; {len(undecided)} could not be decided, which does not change that"
    fields = {"value": mean_held(parts, undecided), "passed": not required, "reason": reason, "findings": findings}
    return construct(Score, fields)


def _finding(one: _Checked) -> Finding:
    expected, scene, held = one
    fields: dict[str, Any] = {"kind": "assertion", "what": expected.assertion.wording, "turn": expected.turn}
    if held is None or scene is None:
        fields |= {"verdict": "not reached", "state": "skip"}
        return construct(Finding, fields)
    results = [part.result(scene) for part in expected.asked]
    evidence = tuple([quote for result in results for quote in result.evidence])
    if held.passed:
        fields |= {"verdict": "holds", "state": "pass", "evidence": evidence}
        if results:
            fields["data"] = {"reasons": [result.reason for result in results]}
        return construct(Finding, fields)
    if expected.turn is not None and not evidence and (answer := scene.answer[:_LONGEST]):
        evidence = (construct(Evidence, {"text": answer, "turn": expected.turn, "verified": True}),)
    state = "fail" if expected.assertion.severity == "fail" else WARN
    fields |= {"verdict": "missed", "state": state, "evidence": evidence, "data": {"found": held.found}}
    return construct(Finding, fields)


def _misses(missed: Sequence[_Checked]) -> str:
    """Return in words what was missed, turn by turn, with what was said instead."""
    named: list[str] = []
    for turn, group in groupby(missed[:_SHOWN], key=lambda one: one.expected.turn):
        of_turn = list(group)
        place = "" if turn is None else f"{turn_label(turn)}: "
        found = "; ".join(one.result.found for one in of_turn if one.result is not None)
        named.append(f"{place}{found}, said {_answer(of_turn[0])}")
    more = f"; and {len(missed) - _SHOWN} more" if len(missed) > _SHOWN else ""
    return "; ".join(named) + more


def _answer(one: _Checked) -> str:
    answer = "" if one.scene is None else shorten(" ".join(one.scene.answer.split()), 100)
    if answer:
        return repr(answer)
    return "nothing" if one.scene is None or one.scene.silent else "nothing in the last turn"


class ExpectMetric(FunctionGrader):
    """Score the share of the row's own assertions (`expect`) that hold, by weight; it passes when all do.

    Assertions that a judge decides ask `model` with these `settings`, or else the model that VIVAVOCE_JUDGE names.
    """

    function: ClassVar[Grade] = staticmethod(expect)
    registered: ClassVar[str] = "expect"
    may_ask = True
    takes_settings = True

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        name: str = "",
        threshold: float | None = None,
        scope: Scope | None = None,
        extractor: str = "last_assistant",
        extractor_config: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name=name, threshold=threshold, scope=scope, extractor=extractor, extractor_config=extractor_config
        )
        self.model = None if model is None else as_model(model)
        self.settings = settings
        self._default = DefaultJudge()

    def asking(self, asked: Mapping[str, Asked]) -> Grader:
        """Return its grader for rows that ask this of metrics."""
        return judged_by(self.grader, asked, self._judge(self.model))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Check the assertions of the row that a conversation came of."""
        asked = asked_by(evaluation_input.sample)
        model = self.model
        if model is None and any(one.asks for one in asked.values()):
            model = self._default.model
        return await graded(judged_by(self.grader, asked, self._judge(model)), evaluation_input, self.name)

    def _judge(self, model: Model | None) -> Judge | None:
        return None if model is None else Judge(model, self.settings)

    async def close(self) -> None:
        """Close the connections of the judge; a later question opens new ones."""
        await super().close()
        await self._default.close()


def asked_by(sample: Sample | None) -> dict[str, Asked]:
    """Return what a row asks of metrics, nothing where its assertions cannot be read."""
    if sample is None or sample.expect is None:
        return {}
    try:
        return procedures(part for one in read_expect(sample.expect) for part in one.asked)
    except UsageError:  # said where they are checked
        return {}
