"""From the tester of a suite to the agent that leads its conversations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.pacing.limits import Budget
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.run.tester import Tester
from vivavoce.samples.sample import Sample
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.testers import build_tester

SUITE = """\
name: led
driver: penelope
dataset: d.jsonl
target: {{kind: function, function: "bot.py:reply"}}
graders:
  goal: {{kind: tool, function: goal_achieved}}
tester:
  {tester}
"""
PEOPLE = """\
from vivavoce.testing import ScriptedModel
customer = ScriptedModel([], "customer")
examiner = ScriptedModel([], "examiner")

def look_up(order: str) -> str:
    "Look an order up."
    return order

class Stubborn:
    name, adversarial = "stubborn", True

    def move(self, state):
        raise NotImplementedError
"""
WHO = "model: people.py:customer"


def suite(tester: str = WHO) -> Suite:
    Path("people.py").write_text(PEOPLE)
    Path("suite.yaml").write_text(SUITE.format(tester=tester.replace("\n", "\n  ")))
    return load_suite(Path("suite.yaml"))


def led_by(tester: str = WHO) -> Tester:
    builder = build_tester(suite(tester), JudgeOpener(Budget(), keys_needed=False))
    assert builder is not None
    return builder


def build_agent(tester: str = WHO) -> PenelopeAgent:
    return led_by(tester).agent


def test_the_tester_and_the_judge_are_models_of_a_file() -> None:
    agent = build_agent(f"{WHO}\njudge: people.py:examiner")
    assert agent.model.name == "customer"
    assert isinstance(agent.goal_metric, GoalAchievementJudge)
    assert agent.goal_metric.model is not None
    assert agent.goal_metric.model.name == "examiner"


def test_without_a_judge_the_tester_judges() -> None:
    agent = build_agent()
    assert agent.goal_metric.model is agent.model


def test_names_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setenv("VIVAVOCE_TESTER", "people.py:customer")
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai:gpt-4.1-mini")
    agent = build_agent("max_turns: 3")
    assert (agent.model.name, agent.max_turns) == ("customer", 3)
    assert agent.goal_metric.model is not None
    assert agent.goal_metric.model.name == "openai:gpt-4.1-mini"


def test_what_the_tester_is_told_reaches_the_agent() -> None:
    agent = build_agent(
        f"{WHO}\ngoal_metric: simple\nstrategy: crescendo\nstrategy_config: {{backtracks: 2}}\nguards: [safety]\n"
        "max_turns: 7\nmin_turns: 2\nmax_steps: 4\nevaluate_every: 3\ntest_timeout: 9\nmax_test_cost: 0.5\n"
        "analysis: false\ntools: [people.py:look_up]\nreview: false\ntemperature: 0.5\nsettings: {top_p: 0.9}"
    )
    setup = agent.setup
    assert isinstance(agent.goal_metric, SimpleGoalEvaluator)
    assert (setup.strategy.name, setup.strategy.backtracks) == ("crescendo", 2)  # pyright: ignore
    assert [tool.name for tool in setup.tools] == ["end_conversation", "look_up"]
    assert (setup.limits.steps, setup.limits.seconds, setup.limits.dollars) == (4, 9.0, 0.5)
    assert (agent.max_turns, agent.min_turns, setup.every, setup.review) == (7, 2, 3, False)
    assert dict(setup.settings) == {"temperature": 0.5, "top_p": 0.9}


def test_guards_and_the_goal_may_have_options_and_be_grading_functions() -> None:
    agent = build_agent(
        f"{WHO}\ngoal_metric: {{metric: goal_achievement, config: {{passing_categories: [partially_achieved]}}}}\n"
        "guards: [{metric: turn_count, name: short, threshold: 4}, ascii_printable_only]"
    )
    assert agent.goal_metric.config.passing_categories == ("partially_achieved",)
    guards = agent.setup.panel.guards
    assert [(guard.name, guard.config.threshold) for guard in guards] == [("short", 4.0), ("ascii_printable_only", 1.0)]


def test_a_strategy_may_be_a_class_of_a_file_or_a_script_of_states() -> None:
    assert build_agent(f"{WHO}\nstrategy: people.py:Stubborn").setup.strategy.name == "stubborn"
    graph = "graph: {start: hi, nodes: {hi: {say: Hello}}}"
    assert build_agent(f"{WHO}\n{graph}").setup.strategy.name == "state_graph"


@pytest.mark.parametrize(
    ("tester", "complaint"),
    [
        ("max_turns: 3", "name the tester model: use tester.model in the suite, --tester, or VIVAVOCE_TESTER"),
        ("model: people.py:nobody", "nobody"),
        (f"{WHO}\nstrategy: crescend", "did you mean 'crescendo'"),
        (f"{WHO}\nstrategy_config: {{speed: 2}}", "strategy 'improvise': no option 'speed'"),
        (f"{WHO}\ngoal_metric: goal_achievment", "did you mean 'goal_achievement'"),
        (f"{WHO}\nguards: [safty]", "did you mean 'safety'"),
        (f"{WHO}\nguards: [{{metric: safty}}]", "did you mean 'safety'"),
        (
            f"{WHO}\nguards: [{{metric: safety, treshold: 1}}]",
            r"tester\.guards\.0\.treshold: unknown key; did you mean 'threshold'",
        ),
        (f"{WHO}\ngraph: {{start: a, nodes: {{b: {{say: Hi}}}}}}", "no node 'a'"),
    ],
)
def test_what_cannot_be_built_is_told_with_its_place(tester: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        build_agent(tester)
    assert str(caught.value).startswith(str(Path("suite.yaml")))
    assert (
        ":6:1 tester" in str(caught.value) or ":7:" in str(caught.value) or ":9:29 tester.guards.0" in str(caught.value)
    )


def context(sample: dict[str, Any], **spec: Any) -> TestContext:
    options = "".join(f"\n{name}: {value}" for name, value in spec.items())
    return led_by(f"{WHO}{options}").context(Sample(id="s", goal="g", **sample), trial=2)


def test_a_row_goes_before_the_suite() -> None:
    test_context = context(
        {"max_turns": 3, "min_turns": 0, "persona": "expert"}, max_turns=9, min_turns=2, persona="novice"
    )
    assert (test_context.max_turns, test_context.min_turns, test_context.trial) == (3, 0, 2)
    assert test_context.persona is not None
    assert test_context.persona.name == "expert"
    test_context = context({}, max_turns=9, min_turns=2, persona="novice")
    assert (test_context.max_turns, test_context.min_turns, test_context.persona and test_context.persona.name) == (
        9,
        2,
        "novice",
    )


def test_of_several_personas_a_row_gets_one_by_its_id_in_all_its_trials() -> None:
    several = f"{WHO}\npersonas: [{{share: 0.5, name: brief, style: 4 words}}, {{share: 0.5, name: wordy}}]"
    tester = led_by(several)
    rows = [Sample(id=f"row-{place}", goal="g") for place in range(40)]
    personas = [[tester.context(row, trial=trial).persona for trial in range(2)] for row in rows]
    assert all(first == second for first, second in personas)
    assert {persona.name for persona, _ in personas if persona is not None} == {"brief", "wordy"}
    told = tester.context(Sample(id="row-1", goal="g", persona="expert")).persona
    assert told is not None
    assert told.name == "expert"


@pytest.mark.parametrize(
    ("tester", "complaint"),
    [
        ("persona: expert\npersonas: [{share: 1, name: brief}]", "use either a persona or personas, not both"),
        ("personas: [{share: 0, name: brief}]", "personas.0.share"),
        ("personas: [{name: brief}]", "personas.0: the key 'share' is missing"),
        ("personas: [{share: 1, stile: dry}]", "did you mean 'style'"),
    ],
)
def test_personas_that_do_not_fit_are_told_with_their_place(tester: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        suite(f"{WHO}\n{tester}")


def test_everything_that_a_row_says_of_its_test_is_told() -> None:
    row: dict[str, Any] = {
        "instructions": "slowly",
        "scenario": "at home",
        "facts": {"order": "1042"},
        "restrictions": ["no names"],
        "policy": "Ask for the order.",
        "must": ["greet"],
        "must_not": ["swear"],
        "input": ["Hi", "Well?"],
    }
    test_context = context(row)
    assert (test_context.goal, test_context.instructions, test_context.scenario, test_context.facts) == (
        "g",
        "slowly",
        "at home",
        {"order": "1042"},
    )
    assert (test_context.restrictions, test_context.must, test_context.must_not) == (
        ("no names",),
        ("greet",),
        ("swear",),
    )
    assert (test_context.openings, test_context.policy) == (("Hi", "Well?"), "Ask for the order.")


@pytest.mark.parametrize(
    ("source", "expected"), [("a shop", {"context": "a shop"}), ({"a": 1}, {"a": 1}), (None, None)]
)
def test_a_context_is_told_as_an_object(source: Any, expected: Any) -> None:
    assert context({"context": source}).context == expected


def test_whether_a_goal_is_to_be_withstood_is_what_the_suite_says_or_else_the_strategy() -> None:
    pair, sample = f"{WHO}\nstrategy: pair", Sample(id="s", goal="g")
    assert led_by(pair).context(sample).adversarial
    harmless = led_by(f"{pair}\nadversarial: false")
    assert not harmless.context(sample).adversarial
    assert harmless.context(sample.model_copy(update={"adversarial": True})).adversarial


def test_a_persona_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'impatient'"):
        context({"persona": "impatiend"})


def test_a_suite_that_nobody_leads_has_no_tester() -> None:
    scripted = suite()
    spec = scripted.spec.model_copy(update={"driver": "scripted", "tester": None})
    assert build_tester(replace(scripted, spec=spec), JudgeOpener(Budget())) is None


def test_whoever_judges_or_leads_otherwise_has_another_fingerprint() -> None:
    same = build_agent().fingerprint
    assert build_agent().fingerprint == same
    others = [f"{WHO}\n{more}" for more in ("judge: people.py:examiner", "strategy: goat", "goal_metric: simple")]
    assert len({same, *(build_agent(other).fingerprint for other in others)}) == 4
