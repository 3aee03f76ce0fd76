"""What the judge of a goal finds besides it, false statements and broken rules: shown, counted, and gated."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import head
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.verdict import breach_lines, explain_verdict, finding
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.run.tallies import tally
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import viva_assert

PEOPLE = """\
import json
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

def speak(request):
    return [ToolCall(name="send_message_to_target", args={"message": "Please pay it back.", "reasoning": "r"})]

def examine(request):
    text = request.messages[1].text
    if "lost" in text:
        return "no answer"
    breaches = []
    if "24.90" in text:
        breaches.append({"what": "it says 24.90", "kind": "false_statement", "evidence": ["EUR 24.90 go to you"]})
    if "misheard" in text:
        breaches.append({"what": "it says so", "kind": "false_statement", "evidence": ["what nobody wrote"]})
    if "unasked" in text:
        breaches.append({"what": "it acts unasked", "kind": "broken_rule", "evidence": ["unasked"]})
    if "unsorted" in text:
        breaches.append({"what": "something is off", "evidence": ["unsorted"]})
    met = {"outcome": "paid back", "kind": "fact", "evidence": ["paid back"], "met": True}
    return {"criteria": [met], "breaches": breaches, "reasoning": "r", "confidence": 1.0}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""
BOT = """\
def reply(message):
    return REPLY
"""
LIE = "Done, it is paid back. EUR 24.90 go to you."
TRUTH = "Done, it is paid back."


def suite_of(replies: list[str], gate: str, driver: str = "replay", graders: str = "", more: str = "") -> Path:
    goal = "It is paid back"
    message = {"role": "user", "content": "Please pay it back."}
    rows: list[dict[str, Any]] = [
        {"id": f"r{n}", "goal": goal, "messages": [message, {"role": "assistant", "content": reply}]}
        for n, reply in enumerate(replies)
    ]
    lines = [f"name: findings\n{more}gate: {gate}\n"]
    if driver == "replay":
        lines.append("driver: replay\ngraders:\n  goal: {kind: metric, metric: goal_achievement, ")
        lines.append('model: "people.py:examiner"}\n')
    else:
        rows = [{"id": "r0", "goal": goal}]
        Path("bot.py").write_text(BOT.replace("REPLY", repr(replies[0])))
        lines.append('driver: penelope\ntarget: {kind: function, function: "bot.py:reply"}\n')
        lines.append('tester: {model: "people.py:customer", judge: "people.py:examiner", max_turns: 1}\n')
        lines.append("graders:\n  goal: {kind: function, function: target_passed}\n")
    path = Path("suite.yaml")
    path.write_text("".join([*lines, graders, f"dataset: {{rows: {json.dumps(rows)}}}\n"]))
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.py").write_text(PEOPLE)


def gate(limits: str, value: str = "1") -> str:
    return f"{{metric_key: goal, value: {value}, max_findings: {{{limits}}}}}"


def ran(replies: list[str], text: str, driver: str = "replay", **options: Any) -> RunResult:
    return run_suite(suite_of(replies, text, driver), RunOptions(**options), store="kept.db")


CASES: dict[str, tuple[list[str], str, str, str]] = {
    "none allowed": ([LIE, TRUTH], "false_statement: 0", "fail", "1 false statement in r0; allowed: 0"),
    "one allowed": ([LIE, TRUTH], "false_statement: 1", "pass", ""),
    "two of one allowed": ([LIE, LIE], "false_statement: 1", "fail", "2 false statements in r0, r1; allowed: 1"),
    "nothing found": ([TRUTH], "false_statement: 0, broken_rule: 0", "pass", ""),
    "the other kind": ([LIE], "broken_rule: 0", "pass", ""),
    "a rule of the policy": ([f"{TRUTH} unasked"], "broken_rule: 0", "fail", "1 broken rule in r0; allowed: 0"),
    "an invented quote": ([f"{TRUTH} misheard"], "false_statement: 0", "pass", ""),
    "without a kind": ([f"{TRUTH} unsorted"], "false_statement: 0", "fail", "1 false statement in r0"),
    "no limit": ([LIE], "", "pass", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_gate_limits_what_the_judge_of_a_goal_finds_besides_it(case: str) -> None:
    replies, limits, verdict, reason = CASES[case]
    result = ran(replies, gate(limits))
    lines = [line for line in explain_verdict(result.summary) if "allowed: " in line]
    assert (result.summary.verdict, len(lines)) == (verdict, bool(reason))
    assert reason in "".join(lines)
    assert result.summary.grader("goal").mean == 1.0, "a finding changes no score"


@pytest.mark.parametrize(("limit", "verdict"), [("0", "fail"), ("1", "inconclusive")])
def test_a_missing_score_may_hide_a_finding(limit: str, verdict: str) -> None:
    result = ran([LIE, "lost"], gate(f"false_statement: {limit}", "0.1"))
    assert result.summary.verdict == verdict
    assert any(
        line.startswith(f"{verdict} · goal: 1 false statement in r0") for line in explain_verdict(result.summary)
    )


def test_an_error_that_a_limit_allows_hides_none() -> None:
    assert ran([LIE, "lost"], gate("false_statement: 1"), max_errors="1").summary.verdict == "pass"


@pytest.mark.parametrize("driver", ["replay", "penelope"])
def test_every_report_says_it(driver: str) -> None:
    result = ran([LIE], gate("false_statement: 0"), driver)
    sentence = "goal: 1 false statement in r0; allowed: 0"
    assert (result.exit_code, finding(result.summary, result.grading)) == (1, f"fails: {sentence}")
    assert list(breach_lines(result.summary)) == ["goal: 1 false statement"]
    reports = [io.StringIO(), io.StringIO(), io.StringIO()]
    with Store.open("kept.db", create=False) as store:
        graded = GradedRun(store, result.run, result.grading)
        for write, out in zip((write_junit, write_markdown, write_json), reports, strict=True):
            write(graded, out)
        stored = tally(store.scores(result.grading.id))
        page = json.dumps(head(result.run, result.grading, result.summary), default=str)
    assert [dict(scores.breaches) for scores in stored.values()] == [{"false_statement": ["r0"]}]
    for text in (*(out.getvalue() for out in reports), page):
        assert sentence in text
    data = json.loads(reports[-1].getvalue())["summary"]
    (reason,) = (reason for reason in data["reasons"] if reason["code"] == "breaches")
    assert (reason["text"], reason["missed"], reason["limit"]) == ("false_statement", 1, "0")
    assert data["graders"][0]["breaches"] == {"false_statement": 1}
    with pytest.raises(AssertionError, match="allowed: 0"):
        viva_assert(result)


@pytest.mark.parametrize(
    ("key", "graders", "complaint"),
    [
        ("polite", "  polite: {kind: function, function: contains}\n", "'polite' reports no false statements"),
        ("goal", "", "mistake"),
    ],
)
def test_a_limit_that_could_not_be_missed_is_refused(key: str, graders: str, complaint: str) -> None:
    kind = "false_statement" if key == "polite" else "mistake"
    with pytest.raises(UsageError, match=complaint):
        run_suite(
            suite_of([LIE], f"{{metric_key: {key}, value: 1, max_findings: {{{kind}: 0}}}}", graders=graders),
            store="kept.db",
        )


def test_trials_do_not_end_early_while_more_could_be_found() -> None:
    suite_text = suite_of(
        [LIE], gate("false_statement: 0", "0.5"), "penelope", more="trials: {max: 9, until: decided}\n"
    )
    with pytest.raises(UsageError, match="a limit on findings cannot be decided while trials are still made"):
        run_suite(suite_text, store="kept.db")
