from __future__ import annotations

import io
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from vivavoce.grading.gates import SimpleGate, Threshold
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.junit import write_junit
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, TIMEOUT, grade, keep, outcome


def report(graded: GradedRun) -> Element:
    out = io.StringIO()
    write_junit(graded, out)
    return fromstring(out.getvalue().encode())


def results(root: Element) -> dict[str, str]:
    """Return what came of each test case, by its name."""
    return {
        case.attrib["name"]: next((child.tag for child in case if child.tag != "properties"), "passed")
        for case in root.iter("testcase")
    }


def counts(element: Element) -> tuple[str, ...]:
    return tuple(element.attrib[name] for name in ("tests", "failures", "errors", "skipped"))


async def test_failures_errors_and_skips_are_told_apart(store: Store) -> None:
    outcomes = [
        outcome("a", {"exact": grade(0.75, passed=True), "judge": failed(BROKEN_JUDGE)}),
        outcome("d", {"judge": 1.0}),
        outcome("b", {"exact": grade(0.25, "wrong city", submission="Rome", ground_truth="Paris")}),
        outcome("c", {"exact": skipped("no ground truth")}, reward=Score(value=1.0)),
    ]
    root = report(await keep(store, outcomes))
    assert results(root) == {
        "a · exact": "passed",
        "a · judge": "error",
        "d · judge": "passed",
        "b · exact": "failure",
        "c · exact": "skipped",
        "c · reward": "passed",
        "gate": "passed",
    }
    assert counts(root) == ("7", "1", "1", "1")
    failure, error = root.find(".//failure"), root.find(".//error")
    assert failure is not None
    assert error is not None
    assert failure.attrib["message"] == "wrong city"
    assert failure.text == "wrong city\nasked: Hi\nsaid: Hello!\nsubmission: Rome\nground truth: Paris"
    assert (error.attrib["type"], error.attrib["message"]) == ("judge.format", "judge: no verdict")


async def test_each_target_has_its_suite_with_its_own_counts_and_time(store: Store) -> None:
    outcomes = [
        outcome("a", {"exact": 0.0, "judge": 1.0}, target="v1"),
        outcome("a", {"exact": 1.0, "judge": 1.0}, target="v2"),
        outcome("b", {"exact": 1.0, "judge": 1.0}, target="v1", trial=1),
    ]
    root = report(await keep(store, outcomes))
    suites = {suite.attrib["name"]: suite for suite in root.iter("testsuite")}
    assert list(suites) == ["v1", "v2", "gate"]
    assert (counts(suites["v1"]), counts(suites["v2"])) == (("4", "1", "0", "0"), ("2", "0", "0", "0"))
    assert (suites["v1"].attrib["time"], suites["v1"].attrib["timestamp"]) == ("3.000", "1970-01-01T00:16:40")
    assert sum(float(case.attrib["time"]) for case in suites["v1"]) == 3.0
    assert {case.attrib["classname"] for case in suites["v2"]} == {"support.v2"}
    assert "b#2 · exact" in results(root)


async def test_the_evidence_of_an_error_is_kept(store: Store) -> None:
    root = report(await keep(store, [outcome("a", {"exact": failed(TIMEOUT)}, failure=TIMEOUT)]))
    error = root.find(".//testsuite[@name='bot']//error")
    assert error is not None
    assert (error.attrib["type"], error.text) == ("target.timeout", "<html>")


@pytest.mark.parametrize(
    ("scores", "ended", "result"),
    [([1.0], True, "passed"), ([0.0], True, "failure"), ([], True, "error"), ([1.0], False, "error")],
)
async def test_the_gate_fails_or_is_an_error_when_it_is_inconclusive(
    store: Store, scores: list[float], ended: bool, result: str
) -> None:
    graded = await keep(store, [outcome(str(i), {"exact": score}) for i, score in enumerate(scores)], ended=ended)
    assert results(report(graded))["gate"] == result


async def test_the_message_of_a_failure_is_its_reason_or_else_the_score(store: Store) -> None:
    gate = SimpleGate("exact", Threshold("avg_score", "gte", 0.9))
    outcomes = [outcome("a", {"exact": grade(0.25, "turn 2:\nwrong city")}), outcome("b", {"exact": grade(0.25, "")})]
    root = report(await keep(store, outcomes, gate=gate))
    assert [failure.attrib["message"] for failure in root.iter("failure")] == [
        "turn 2: wrong city",
        "scored 0.25, which does not pass",
        "fail · exact: mean must be ≥ 0.9; it is 0.25",
    ]


async def test_a_suite_without_a_gate_has_no_test_of_one(store: Store) -> None:
    assert results(report(await keep(store, [outcome("a")], spec={}, gate=None))) == {"a · exact": "passed"}


async def test_a_failed_conversation_without_grades_is_an_error_and_one_not_yet_graded_is_skipped(store: Store) -> None:
    root = report(await keep(store, [outcome("a", {}, failure=TIMEOUT), outcome("b", {})], ended=False))
    assert (results(root)["a"], results(root)["b"]) == ("error", "skipped")


async def test_what_xml_cannot_hold_does_not_break_the_file(store: Store) -> None:
    hostile = 'a\x00\x1b[31m\ufffe ]]> <!-- </testcase> & "quotes"'
    outcomes = [outcome("a\x01<b>", {"exact": grade(0.0, hostile, submission=hostile)}, target="<t>&")]
    root = report(await keep(store, outcomes))
    failure = root.find(".//failure")
    assert failure is not None
    assert '\ufffd ]]> <!-- </testcase> & "quotes"' in (failure.text or "")
    assert [suite.attrib["name"] for suite in root.iter("testsuite")] == ["<t>&", "gate"]


@pytest.mark.parametrize("gate", [None, {"kind": "simple", "metric_key": "exact", "aggregation": "min", "value": 0.9}])
async def test_a_test_case_fails_where_its_score_did_not_pass_whatever_the_gate(
    store: Store, gate: dict[str, Any] | None
) -> None:
    outcomes = [
        outcome("a", {"exact": grade(0.25, passed=True), "judge": grade(0.75, passed=False)}),
        outcome("b", {"exact": 0.99, "judge": 1.0}, reward=Score(value=0.5, passed=True)),
    ]
    assert results(report(await keep(store, outcomes, spec={"gate": gate}, gate=None))) == {
        "a · exact": "passed",
        "a · judge": "failure",
        "b · exact": "failure",
        "b · judge": "passed",
        "b · reward": "passed",
    }
