"""Every option of an agent and of a test is explained where it stands, and known by its older name."""

from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.penelope.agent import read_agent_options
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.options import About, AgentOptions


def test_the_options_of_the_seed_are_there() -> None:
    wanted = (
        "tools custom_tools max_turns max_iterations min_turns timeout_seconds enable_transparency verbose goal_metric "
        "evaluation_metrics evaluate_during_test guard_metrics analysis_model enable_analysis_tools"
    )
    assert set(wanted.split()) <= set(AgentOptions.__annotations__)


def test_a_test_may_be_told_everything_that_a_test_is_about() -> None:
    told = {*About.__annotations__, "goal", "instructions"}
    assert set(TestContext.model_fields) <= told


def test_a_misspelt_option_has_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'verbose'"):
        read_agent_options({"verbos": True})  # pyright: ignore[reportArgumentType]


def test_options_are_read_without_changing_what_was_given() -> None:
    given: AgentOptions = {"max_iterations": 3}
    assert (read_agent_options(given), given) == ({"max_turns": 3}, {"max_iterations": 3})
