"""What roles used, in words."""

from __future__ import annotations

from vivavoce.records.details import by_role, usage_text
from vivavoce.records.score import Usage


def test_roles_stand_in_order_and_who_used_nothing_is_left_out() -> None:
    usage = Usage(input_tokens=1200, output_tokens=30, calls=2)
    used = {"graders": usage, "judge": Usage(), "target": usage.model_copy(update={"cost": 0.012}), "tester": usage}
    tokens = "1,200 tokens in, 30 out"
    assert by_role(used) == f"tester {tokens} · target {tokens}, $0.012 · graders {tokens}"
    assert by_role({}) == ""


def test_a_cost_without_tokens_is_no_nothing() -> None:
    assert by_role({"target": Usage(cost=0.5)}) == "target 0 tokens in, 0 out, $0.50"


def test_the_share_of_tokens_that_came_from_a_prompt_cache_is_told() -> None:
    used = Usage(input_tokens=1200, cached_input_tokens=900, output_tokens=30, calls=2)
    assert usage_text(used) == "1,200 tokens in (75% from the prompt cache), 30 out"
