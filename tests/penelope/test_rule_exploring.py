"""`explore: rules`: what a test does with the turns that are left when its goal is reached."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.messages import ToolCall

from .recorded import NOTHING_WRONG, Each, Recorded, says

ASKS = ["I solved it with x = 4, is that right?", "What is x in the next one?", "Please, what is x?", "Just x!"]
TUTOR = [says("Yes, well done."), says("Try it yourself."), says("Think again."), says("x = 9.")]
SOLVED = {"outcome": "checked", "kind": "fact", "evidence": ["Yes, well done."], "met": True}
SOLUTION_RULES = [
    {"rule": 1, "happened": "yes", "evidence": ["Try it yourself."]},
    {"rule": 2, "happened": "yes", "evidence": ["x = 9."]},
]


def tutor(explore: str, judge: dict[str, Any], user: list[Any] = ASKS, **about: Any) -> Recorded:
    known = {"must_not": ["tell x"], "must": ["encourage the user"], "max_turns": 4, "explore": explore}
    return Recorded("The answer is checked", user, TUTOR, judge=judge, about=known | about)


async def test_rules_are_tried_until_all_turns_are_used() -> None:
    test = tutor("rules", {"criteria": [SOLVED], "rules": Each(SOLUTION_RULES)})
    result = await test.held()
    assert (result.goal_achieved, result.target_passed, result.blame) == (True, False, "target")
    assert (result.stopped_by, str(result.status), len(result.history)) == ("goal_achieved", "success", 4)
    guidance = [turn.guidance or "" for turn in result.history]
    assert [('"tell x"' in text, '"encourage the user"' in text) for text in guidance] == [
        (False, False),
        (True, False),
        (False, True),
        (True, False),
    ]
    assert list(map(str, result.coverage)) == ["must not: tell x: turns 2, 4", "must: encourage the user: turn 3"]


async def test_by_default_a_test_ends_when_its_goal_is_reached() -> None:
    rules: list[dict[str, Any]] = [
        {"rule": 1, "happened": "yes", "evidence": ["well done"]},
        {"rule": 2, "happened": "no", "evidence": []},
    ]
    result = await tutor("goal", {"criteria": [SOLVED], "rules": Each(rules)}).held()
    assert (result.target_passed, len(result.history), result.coverage) == (True, 1, [])


async def test_the_tester_may_leave_before_the_goal_is_reached_and_not_after() -> None:
    leave = [ToolCall(name="end_conversation", args={"reason": "That was all."})]
    open_goal: dict[str, Any] = {"outcome": "checked", "kind": "fact", "evidence": [], "met": False}
    early = tutor(
        "rules", {"criteria": [open_goal], "rules": Each(SOLUTION_RULES), "faults": NOTHING_WRONG}, [ASKS[0], leave]
    )
    assert (await early.held()).stopped_by == "tester_left"
    late = await tutor(
        "rules", {"criteria": [SOLVED], "rules": Each(SOLUTION_RULES)}, [ASKS[0], leave, *ASKS[1:]]
    ).held()
    assert (late.stopped_by, late.history[1].steps[0].refused) == ("goal_achieved", True)


@pytest.mark.parametrize("about", [{"must": [], "must_not": []}, {"adversarial": True}])
async def test_without_rules_and_for_attacks_there_is_nothing_to_try(about: dict[str, Any]) -> None:
    fields = {"given": "yes", "given_evidence": ["Yes, well done."], "asked": "no", "asked_evidence": []}
    result = await tutor(
        "rules", {"criteria": [SOLVED], "given": fields, "rules": Each(SOLUTION_RULES)}, **about
    ).held()
    assert (result.stopped_by, len(result.history), result.coverage) == ("goal_achieved", 1, [])
