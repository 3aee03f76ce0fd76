"""The suite of one test, as `viva test` makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.command_line import testing_suite as suite_of  # its name begins like that of a test
from vivavoce.suites.dataset import check_dataset
from vivavoce.suites.metric_names import metric_graders

METRICS = [{"metric": "safety", "model": "openai:j", "name": "safe"}, "refusal"]
TARGET = {"kind": "function", "function": "bot.py:reply"}


def test_a_test_is_a_suite_of_one_row_with_a_gate_on_the_target() -> None:
    suite = suite_of(TARGET, {"goal": "Return it"}, {"model": "openai:m"}, metric_graders(METRICS), Path("here"))
    assert (suite.base, suite.source) == (Path("here"), "test")
    spec = suite.spec
    assert (spec.driver, spec.dataset.rows) == ("penelope", [{"id": "test", "goal": "Return it"}])
    assert list(spec.graders) == ["goal", "target", "safe", "refusal"]
    assert spec.gate is not None
    assert spec.gate.model_dump(include={"metric_key", "op", "value"}) == {
        "metric_key": "target",
        "op": "gte",
        "value": 1,
    }
    assert spec.graders["safe"].model_dump()["model"] == "openai:j"
    assert check_dataset(suite).samples == 1


@pytest.mark.parametrize(
    ("target", "tester", "complaint"),
    [
        ({"kind": "functoin"}, {}, "did you mean 'function'"),
        (TARGET, {"max_turns": 0}, "tester.max_turns"),
        (TARGET, {"strategy": "pair", "graph": {"start": "a"}}, "use either a graph or a strategy, not both"),
    ],
)
def test_what_cannot_be_used_is_told_without_a_file(
    target: dict[str, str], tester: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        suite_of(target, {"goal": "g"}, tester, {}, Path())
    assert ".yaml" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [({"goal": "g", "max_turns": 0}, "max_turns"), ({"gaol": "g"}, "goal")],
)
def test_a_row_that_is_none_is_told(row: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        check_dataset(suite_of(TARGET, row, {}, {}, Path()))
