"""Every option of an agent and of a test is explained where it stands, and known by its older name."""

from __future__ import annotations

import pytest

from stage import Bot, judge, player
from vivavoce.errors import UsageError
from vivavoce.penelope.agent import PenelopeAgent, read_agent_options
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.options import About, AgentOptions


def test_the_options_of_the_seed_are_there() -> None:
    expected = (
        "tools custom_tools max_turns max_iterations min_turns timeout_seconds enable_transparency verbose goal_metric "
        "evaluation_metrics evaluate_during_test guard_metrics analysis_model enable_analysis_tools"
    )
    assert set(expected.split()) <= set(AgentOptions.__annotations__)


def test_a_test_may_be_told_everything_that_a_test_is_about() -> None:
    field_names = {*About.__annotations__, "goal", "instructions"}
    assert set(TestContext.model_fields) <= field_names


def test_a_misspelt_option_has_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'verbose'"):
        read_agent_options({"verbos": True})  # pyright: ignore[reportArgumentType]


def test_options_are_read_without_changing_what_was_given() -> None:
    options: AgentOptions = {"max_iterations": 3}
    assert (read_agent_options(options), options) == ({"max_turns": 3}, {"max_iterations": 3})


def test_an_option_that_is_none_is_as_not_given() -> None:
    without: AgentOptions = dict.fromkeys(AgentOptions.__annotations__)  # pyright: ignore[reportAssignmentType]
    assert read_agent_options(without) == {}
    assert read_agent_options({"tools": None, "custom_tools": []}) == {"tools": []}


def test_the_defaults_of_the_seed_make_the_same_agent_as_no_options() -> None:
    model, judging = player(), judge(True)
    plain = PenelopeAgent(model, judge=judging)
    agent = PenelopeAgent(
        model,
        judge=judging,
        tools=None,
        custom_tools=None,
        goal_metric=None,
        evaluation_metrics=None,
        guard_metrics=None,
        analysis_model=None,
    )
    assert agent.fingerprint == plain.fingerprint
    assert agent.execute_test(Bot(), goal="Return a lamp").goal_achieved
