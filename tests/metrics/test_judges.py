"""The judges of a metric: which there are, and the same metric with others in their place."""

from __future__ import annotations

from vivavoce.metrics import AllOf, BaseMultiTurnMetric, GoalAchievementJudge, Panel, SafetyMetric
from vivavoce.metrics.custom import function_metric
from vivavoce.metrics.panel import asking, copy_of, with_judges
from vivavoce.models.model import Model
from vivavoce.testing import ScriptedModel

TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
SAFE = {"violations": list[str](), "reasoning": "Fine.", "confidence": 1.0}


def kind(messages: list[object]) -> bool:
    return True


def judges(metric: BaseMultiTurnMetric) -> list[str | None]:
    return [None if one.model is None else one.model.name for one in asking(metric)]


def test_every_part_that_asks_gets_the_judge_that_is_chosen_for_it_and_keeps_its_own() -> None:
    own, other = ScriptedModel([], "own"), ScriptedModel([], "other")
    panel = Panel(SafetyMetric(), name="panel", models=[own, ScriptedModel([], "second")])
    whole = AllOf(SafetyMetric(own), GoalAchievementJudge(), function_metric(kind), panel)
    changed = with_judges(whole, lambda judge: judge or other)
    assert judges(whole) == ["own", None, "own", "second"]
    assert judges(changed) == ["own", "other", "own", "second"]
    assert judges(with_judges(whole, lambda _: None)) == [None] * 4
    assert type(changed) is AllOf
    assert changed.parts[2] is whole.parts[2]


def test_a_metric_that_asks_nobody_is_returned_as_it_is() -> None:
    exact = function_metric(kind)
    assert with_judges(exact, lambda _: ScriptedModel([])) is exact
    assert judges(exact) == []


def test_a_fingerprint_is_that_of_the_judge_in_place() -> None:
    def named(name: str) -> Model:
        return ScriptedModel([], name)

    for metric in (SafetyMetric(named("a")), AllOf(SafetyMetric(named("a"))), Panel(SafetyMetric(named("a")), votes=2)):
        before = metric.fingerprint
        assert with_judges(metric, lambda _: named("b")).fingerprint != before
        assert with_judges(metric, lambda _: named("a")).fingerprint == before
        assert copy_of(metric).fingerprint == metric.fingerprint == before


async def test_a_panel_asks_the_judges_in_place() -> None:
    model = ScriptedModel(lambda _: SAFE)
    panel = with_judges(Panel(SafetyMetric(), votes=3), lambda _: model)
    result = await panel.aevaluate(TALK)
    assert (result.score, [vote["model"] for vote in result.details["votes"]]) == (1.0, ["scripted"] * 3)
    assert [request.trial for request in model.requests] == [0, 1, 2]


async def test_closing_a_composition_closes_the_judges_of_its_parts() -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def close(self) -> None:
            closed.append(self.name)

    inner = Panel(SafetyMetric(Closing([], "a")), votes=2)
    await AllOf(inner, GoalAchievementJudge(Closing([], "b")), function_metric(kind)).close()
    assert closed == ["a", "a", "b"]
