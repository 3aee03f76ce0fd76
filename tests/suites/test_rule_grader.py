from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import check_suite
from vivavoce.suites.grading_spec import RuleGraderSpec
from vivavoce.suites.load import dump_spec, load_suite
from vivavoce.suites.spec import SuiteSpec

HEAD = """\
name: refunds
dataset: {rows: [{id: a, input: hello}]}
target: {kind: openai, base_url: "http://localhost:1/v1", model_handles: [m], tools: TOOLS}
graders:
  careful:
    kind: rule
"""
TOOLS = "[{type: function, function: {name: look_up}}, {type: function, function: {name: refund_order}}]"
RULE = """\
    each: {call: refund_*}
    only_after:
      - {call: look_up, same: order}
      - {user_says: '\\byes\\b', within_turns: 0}
    display_name: careful refunds
"""


def mistakes(folder: Path, rule: str, tools: str = TOOLS) -> list[str]:
    path = folder / "suite.yaml"
    path.write_text(HEAD.replace("TOOLS", tools) + rule)
    try:
        check_suite(load_suite(path))
    except UsageError as error:
        return [str(problem).replace(f"{folder}/", "") for problem in error.problems]
    return []


def test_a_rule_is_written_into_a_suite_and_stored_with_its_run(tmp_path: Path) -> None:
    assert mistakes(tmp_path, RULE) == []
    suite = load_suite(tmp_path / "suite.yaml")
    stored = SuiteSpec.model_validate(dump_spec(suite))
    assert stored == suite.spec
    rule = stored.graders["careful"]
    assert isinstance(rule, RuleGraderSpec)
    assert (rule.metric("careful").name, rule.display_name) == ("careful", "careful refunds")
    assert rule.metric("careful").rule.only_after == rule.only_after


@pytest.mark.parametrize(
    ("rule", "mistake"),
    [
        ("    each: {call: refund_order}\n", "suite.yaml:5:3 graders.careful: each needs only_after"),
        ("    never: {call: x, wher: {}}\n", "suite.yaml:7:22 graders.careful.never.wher: unknown key; did you mean"),
        (
            "    never: {user_says: '.*'}\n",
            "suite.yaml:7:13 graders.careful.never.user_says: /.*/ matches an empty text",
        ),
        (
            "    always:\n      call: lookup\n",
            "suite.yaml:8:7 graders.careful.always.call: the target has no tool 'lookup'",
        ),
        (
            "    each: {call: refund_order}\n    only_after: {call: look_up}\n",
            "suite.yaml:8:5 graders.careful.only_after: needs a list; write [x] for a list of one",
        ),
        (
            "    each: {call: refund_order}\n    only_after:\n      - call: [look_up, loo*, x]\n",
            "suite.yaml:9:9 graders.careful.only_after.0.call: the target has no tool 'x'",
        ),
    ],
)
def test_a_mistake_in_a_rule_has_its_line(tmp_path: Path, rule: str, mistake: str) -> None:
    [problem] = mistakes(tmp_path, rule)
    assert problem.startswith(mistake)


@pytest.mark.parametrize("tools", ["[]", "null", "[{type: web_search}]"])
def test_tools_that_are_not_named_are_not_checked(tmp_path: Path, tools: str) -> None:
    assert mistakes(tmp_path, "    never: {call: anything}\n", tools) == []


def test_a_rule_that_is_named_as_a_metric_is_checked_in_the_same_way(tmp_path: Path) -> None:
    metric = HEAD.replace("kind: rule", "kind: metric\n    metric: rule")
    path = tmp_path / "suite.yaml"
    path.write_text(metric.replace("TOOLS", TOOLS) + "    config: {never: {call: refund}}\n")
    with pytest.raises(UsageError, match=r"config.never.call: the target has no tool 'refund'; did you mean"):
        check_suite(load_suite(path))
