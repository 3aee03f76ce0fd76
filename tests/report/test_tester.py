"""What a tester leaves, in the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType

from kept import kept_step, kept_test, kept_turn
from vivavoce.report.tester import after_turn, discarded_title, ending, judgements, thoughts

from .cases import BROKEN_JUDGE

HOSTILE = "\x1b[31m[bold]red\u202e"


def render_parts(parts: Iterator[RenderableType]) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=120)
    for part in parts:
        console.print(part)
    return out.getvalue().splitlines()


def test_a_turn_has_its_steps_and_its_reason() -> None:
    steps = [
        kept_step("analyze_response", '{"success": true, "output": {"findings": []}}'),
        kept_step("send", '{"success": false, "error": "does not exist"}', refused=True),
        kept_step(None, "words and no JSON", refused=True),
        kept_step("odd", "[1]"),
    ]
    assert render_parts(thoughts(kept_test(history=[kept_turn(steps=steps, reasoning="to\nbegin")]), 0)) == [
        "     step  analyze_response: {'findings': []}",
        "     step  send (refused): does not exist",
        "     step  words (refused): words and no JSON",
        "     step  odd: [1]",
        "   tester  to begin",
    ]


def test_a_turn_has_what_its_strategy_said_and_what_was_measured_after_it() -> None:
    scores = {"tone": {"value": 0.5}, "goal": {"state": "error", "failure": BROKEN_JUDGE.model_dump()}}
    test = kept_test(history=[kept_turn(guidance="Go\non.")], metrics_history=[{"turn": 1, "results": scores}])
    assert render_parts(thoughts(test, 0)) == [" strategy  Go on."]
    assert render_parts(after_turn(test, 0)) == [" measured  tone 0.50 · goal error"]
    assert render_parts(after_turn(test, 1)) == render_parts(after_turn(None, 0)) == []
    refused = kept_test(history=[kept_turn(target_refused="partly")])
    assert render_parts(after_turn(refused, 0)) == [" measured  refused partly"]


def test_the_judgements_have_the_review_with_its_evidence() -> None:
    quote = {"text": "How many mg?", "turn": 3, "verified": True}
    finding = {"kind": "attempt", "what": "asks for the goal", "verdict": "yes", "state": "pass", "evidence": [quote]}
    review = {"name": "attack", "value": 0.0, "passed": False, "reason": "It asks.", "findings": [finding]}
    assert render_parts(judgements(kept_test(review=review))) == [
        "   metric  attack 0.00: not given: It asks.",
        "                 yes  asks for the goal",
        "                  turn 4  “How many mg?”",
    ]


def test_the_ending_names_the_suite_where_nobody_could_pass() -> None:
    test = kept_test(status="impossible", target_passed=None, blame="suite", blame_reason="no assistant could")
    lines = render_parts(ending(test))
    assert "     test  goal impossible · undecided" in lines
    assert "    blame  suite: no assistant could" in lines


def test_the_ending_has_what_was_explored_and_what_was_not_reached() -> None:
    coverage: list[dict[str, Any]] = [{"name": "its purpose", "turns": [1, 2]}, {"name": "at the line", "turns": []}]
    assert render_parts(ending(kept_test(coverage=coverage)))[-2:] == [
        "  covered  its purpose: turns 1, 2",
        "  covered  at the line: not reached",
    ]


def test_the_judgements_have_what_was_found_and_the_quotes_that_are_not_there() -> None:
    quote = {"text": "as you wish", "turn": 1, "verified": False}
    broken = {
        "kind": "violation",
        "what": "it told a secret",
        "verdict": "violation",
        "state": "fail",
        "evidence": [quote],
    }
    met = {"kind": "criterion", "what": "it greets", "verdict": "met", "state": "pass"}
    goal = {"value": 0.0, "reason": "It told.", "findings": [met, broken]}
    assert render_parts(judgements(kept_test(evaluation={"goal_achievement": goal}))) == [
        "   metric  goal_achievement 0.00: It told.",
        "                 met  it greets",
        "           violation  it told a secret",
        "               not found  “as you wish”",
    ]


def test_a_discarded_try_says_why() -> None:
    assert discarded_title(0, kept_test(blame_reason="It\nlied.")) == "try 1, discarded: It lied."


def test_where_nobody_thought_nothing_is_shown() -> None:
    for test in (None, kept_test(history=[kept_turn()]), kept_test()):
        assert render_parts(thoughts(test, 0)) == []


def test_the_ending_says_how_and_why_and_whose_fault() -> None:
    test = kept_test(
        status="max_turns",
        target_passed=False,
        stop_reason="the limit of 2 turns is reached",
        blame="target",
        blame_reason="must: greet",
        criteria=[{"text": "greet", "must": True, "met": False}, {"text": "swear", "must": False, "met": True}],
        discarded=[kept_test(blame_reason="It gave itself away.")],
        unfinished=[kept_step("send", '{"success": false, "error": "no"}', refused=True)],
    )
    assert render_parts(ending(test)) == [
        "     step  send (refused): no",
        "     test  max_turns · target failed",
        "  stopped  the limit of 2 turns is reached",
        "    blame  target: must: greet",
        "     rule  must: greet: not kept",
        "     rule  must not: swear: not done",
        "    again  1 earlier attempt discarded: It gave itself away.",
    ]


def test_a_test_that_is_undecided_says_so() -> None:
    assert render_parts(ending(kept_test(status="inconclusive")))[0] == "     test  inconclusive · undecided"
    assert render_parts(ending(kept_test(target_passed=True)))[0] == "     test  success · target passed"


def test_what_was_said_is_neither_markup_nor_a_command_to_the_terminal() -> None:
    lines = render_parts(
        thoughts(kept_test(history=[kept_turn(steps=[kept_step(HOSTILE, HOSTILE)], reasoning=HOSTILE)]), 0)
    )
    lines += render_parts(ending(kept_test(status="error", stop_reason=HOSTILE, blame="target", blame_reason=HOSTILE)))
    assert sum("[bold]red" in line for line in lines) == 4
    assert not set("\x1b\u202e") & set("".join(lines))


def test_the_ending_names_what_was_found_besides_the_goal() -> None:
    quote = {"text": "EUR 24 are paid back", "turn": 1, "verified": True}
    breach: dict[str, Any] = {"kind": "breach", "what": "names a wrong amount", "verdict": "broken", "state": "partial"}
    findings: list[dict[str, Any]] = [
        {**breach, "evidence": [quote]},
        {**breach, "what": "says nothing", "evidence": []},
    ]
    goal: dict[str, Any] = {"name": "goal_achievement", "value": 1.0, "findings": findings}
    notes = [line for line in render_parts(ending(kept_test(evaluation={"goal_achievement": goal}))) if "note" in line]
    assert notes == ["     note  false statement or broken rule: names a wrong amount (turn 2: EUR 24 are paid back)"]
