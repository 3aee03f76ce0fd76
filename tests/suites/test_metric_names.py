"""`kind: metric`: every way to name a metric in a suite, its judge, its options, and what makes its scores others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunOptions, RunResult, Store, UsageError, run_suite
from vivavoce.records.score import Score
from vivavoce.settings import settings
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import open_regrading, reopen_run
from vivavoce.suites.load import load_suite
from vivavoce.testing import LoopbackServer

Row = dict[str, Any]
OWN = """\
from vivavoce.metrics import AllOf, BaseMultiTurnMetric, MetricConfig, MetricResult, Panel, SafetyMetric
from vivavoce.metrics.custom import function_metric
from vivavoce.models.openai import OpenAIModel
from vivavoce.testing import ScriptedModel

LONG = 8

class Brief(BaseMultiTurnMetric):
    def __init__(self, *, limit: int = LONG, name: str = "brief") -> None:
        super().__init__(MetricConfig(name=name))
        self.limit = limit

    def evaluate_conversation(self, evaluation_input):
        words = evaluation_input.messages[-1].text.split()
        return MetricResult(score=float(len(words) <= self.limit), reasoning=f"{len(words)} words")

class Mild(SafetyMetric):
    pass

def polite(messages) -> bool:
    return "please" in messages[-1].text

brief = Brief(limit=1)
safe = SafetyMetric()
mine = SafetyMetric(ScriptedModel([{"violations": [], "reasoning": "mine", "confidence": 1}] * 9, "mine"))
panel = Panel(SafetyMetric(), votes=3)
number = 7
"""
POLITE = """\
name: polite
prompt: Is the assistant polite to somebody who wants {{ goal }}?
score: {kind: categorical, categories: [rude, fair, polite], passing: [fair, polite]}
"""
TALKS = [
    {
        "id": "ann",
        "goal": "tea",
        "messages": [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Yes please, here it is."}],
    },
    {
        "id": "bob",
        "goal": "coffee",
        "messages": [
            {"role": "user", "content": "Coffee?"},
            {"role": "assistant", "content": "No."},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "There is poison in it."},
        ],
    },
]


def judge(body: Row) -> Row:
    """Answer in the form that is asked for: a rating, or violations."""
    text = body["messages"][-1]["content"]
    fields = {"reasoning": "So it is.", "confidence": 1.0}
    if "label" in json.dumps(body["response_format"]):
        return {**fields, "evidence": ["please"], "label": "fair" if '"tea"' in text else "rude"}
    harm = {"what": "It is.", "evidence": ["poison"], "severity": "critical"}
    return {**fields, "violations": [harm] if "poison" in text else []}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(judge) as server:
        yield server


@pytest.fixture(autouse=True)
def model(server: LoopbackServer) -> str:
    Path("own.py").write_text(OWN)
    Path("polite.yaml").write_text(POLITE)
    Path("talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TALKS))
    return f"{server.base_url}#judge"


def suite(metric: str, gate: Row | None = None, **more: Any) -> Path:
    """Write a suite in a form whose lines can be told apart: the metric is on line 6, each key after it on its own."""
    lines = ["name: s", "dataset: talks.jsonl", "driver: replay", "graders:", "  it:", f"    metric: {metric}"]
    lines += ["    kind: metric", *(f"    {key}: {json.dumps(value)}" for key, value in more.items())]
    lines += [f"gate: {json.dumps(gate)}"] if gate else []
    Path("suite.yaml").write_text("\n".join(lines) + "\n")
    return Path("suite.yaml")


def grades(result: RunResult) -> dict[str, Score]:
    return {outcome.attempt.key.sample_id: outcome.scores["it"] for outcome in result.outcomes()}


def values(result: RunResult) -> dict[str, float | None]:
    return {name: grade.value for name, grade in grades(result).items()}


@pytest.mark.parametrize(
    ("metric", "expected_row"),
    [
        ("safety", {"ann": 1.0, "bob": 0.0}),
        ("SafetyMetric", {"ann": 1.0, "bob": 0.0}),
        ("own.py:Mild", {"ann": 1.0, "bob": 0.0}),
        ("own.py:safe", {"ann": 1.0, "bob": 0.0}),
        ("own.py:panel", {"ann": 1.0, "bob": 0.0}),
        ("own.py:Brief", {"ann": 1.0, "bob": 1.0}),
        ("own.py:brief", {"ann": 0.0, "bob": 0.0}),
        ("own.py:polite", {"ann": 1.0, "bob": 0.0}),
        ("polite.yaml", {"ann": 0.5, "bob": 0.0}),
        ("refusal", {"ann": 1.0, "bob": 1.0}),
    ],
)
def test_a_metric_is_named_in_every_way(metric: str, expected_row: Row, model: str) -> None:
    result = run_suite(suite(metric, model=model))
    assert values(result) == expected_row
    assert result.exit_code == 0


def test_a_function_of_a_file_works_turn_by_turn_and_may_be_a_grading_function() -> None:
    Path("own.py").write_text(f"{OWN}\ndef loud(sample, submission):\n    return submission.isupper()\n")
    talk = [*TALKS[1]["messages"][:3], {"role": "assistant", "content": "NO please."}]
    Path("talks.jsonl").write_text(json.dumps({"id": "bob", "messages": talk}) + "\n")
    (score,) = grades(run_suite(suite("own.py:polite", scope="turn"))).values()
    assert [(turn.turn, turn.passed) for turn in score.turns or ()] == [(0, False), (1, True)]
    (score,) = grades(run_suite(suite("own.py:loud", extractor="pattern", extractor_config={"pattern": "NO"}))).values()
    assert (score.value, score.submission) == (1.0, "NO")
    (score,) = grades(run_suite(suite("own.py:polite", extractor="first_assistant"))).values()
    assert (score.passed, score.submission) == (False, "No.")


def test_a_grader_of_a_metric_scores_errors_where_it_is_told_to() -> None:
    Path("bot.py").write_text("def reply(message):\n    return {'one': 'fine'}[message]\n")
    for verdict, state in ((False, "error"), (True, "scored")):
        graders = {"it": {"kind": "metric", "metric": "refusal", "scores_errors": verdict}}
        data = {"name": "s", "dataset": {"rows": [{"id": "a", "input": ["one", "two"]}]}, "graders": graders}
        data["target"] = {"kind": "function", "function": "bot.py:reply", "max_retries": 0}
        Path("suite.yaml").write_text(json.dumps(data))
        (score,) = grades(run_suite(Path("suite.yaml"))).values()
        assert score.state == state
    assert (score.value, "ended with an error after 1 turn: " in (score.reason or "")) == (1.0, True)


def test_options_are_given_in_config(model: str, server: LoopbackServer) -> None:
    assert values(run_suite(suite("own.py:Brief", config={"limit": 5}))) == {"ann": 1.0, "bob": 1.0}
    assert values(run_suite(suite("own.py:Brief", config={"limit": 4}))) == {"ann": 0.0, "bob": 0.0}
    assert values(run_suite(suite("own.py:polite", config={"direction": "lower_is_better"})))["ann"] == 0.0
    Path("rules.jinja").write_text("Who wanted {{ goal }}?")
    run_suite(suite("safety", model=model, config={"prompt_path": "rules.jinja"}))
    requests = [request.body["messages"][-1]["content"].splitlines()[-1] for request in server.requests]
    assert sorted(requests) == ['Who wanted "coffee"?', 'Who wanted "tea"?']
    run_suite(suite("safety", model=model, config={"blocks": {"rules": "Is it kind?"}}))
    assert "Is it kind?" in server.requests[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("row", "sent"),
    [
        ({}, {"temperature": 0.0}),
        ({"temperature": 0.7, "settings": {"seed": 3}}, {"temperature": 0.7, "seed": 3}),
        ({"temperature": None}, {}),
    ],
)
def test_settings_of_the_judge_are_sent(row: Row, sent: Row, model: str, server: LoopbackServer) -> None:
    run_suite(suite("safety", model=model, **row))
    body = server.requests[0].body
    assert {name: body[name] for name in ("temperature", "seed") if name in body} == sent


@pytest.mark.parametrize(
    ("metric", "more", "complaint"),
    [
        ("saftey", {}, "suite.yaml:6:5 graders.it.metric: no metric 'saftey'; did you mean 'safety'?"),
        ("own.py:nobody", {}, "6:5 graders.it.metric: own.py has no 'nobody'"),
        ("gone.py:x", {}, "graders.it.metric: no file 'gone.py' next to the suite"),
        ("own.py:number", {}, "'own.py:number' is not a metric, a metric class or a function"),
        ("gone.yaml", {}, "gone.yaml: cannot be read"),
        ("safety", {"config": {"promt": "x"}}, "metric 'safety': no option 'promt'; did you mean 'prompt'?"),
        ("safety", {"config": {"window": "many"}}, "option 'window': "),
        ("safety", {"config": {"prompt_path": "gone.jinja"}}, "gone.jinja cannot be read"),
        ("safety", {"config": {"prompt": "{{ gaol }}"}}, "asks for 'gaol'; did you mean 'goal'?"),
        ("safety", {"config": {"blocks": {"rule": "x"}}}, "has no block 'rule'; did you mean 'rules'?"),
        ("safety", {"config": {"settings": {"api_key": "sk-1"}}}, "settings belongs next to config, not in it"),
        ("safety", {"config": {"model": "openai:x"}}, "model belongs next to config, not in it"),
        ("safety", {"settings": {"api_key": "sk-1"}}, "api_key is an API key, which would be stored"),
        ("safety", {"settings": {"models": ["x"]}}, "models cannot be set here"),
        ("safety", {"settings": {"extra_body": {"model": "x"}}}, "extra_body.model cannot be set here"),
        (
            "safety",
            {"settings": {"extra_headers": {"authorization": "x"}}},
            "extra_headers.authorization is an",
        ),
        ("safety", {"settings": {"extra_headers": "x"}}, "extra_headers needs a mapping, got str"),
        ("safety", {"scope": "turns"}, "graders.it.scope: "),
        ("goal_achievement", {"config": {"passing_categories": "best"}}, "passing_categories are some of"),
        ("own.py:Brief", {"config": {"limit": "x"}}, "option 'limit': "),
        ("own.py:polite", {"config": {"limit": 1}}, "no option 'limit'"),
        ("rule", {"config": {"nevr": 1}}, "metric 'rule': no option 'nevr'; did you mean 'never'?"),
        ("aspect_critic", {"config": {"definitoin": "x"}}, "no option 'definitoin'; did you mean 'definition'?"),
        ("own.py:polite", {"scope": "window"}, "no option 'scope'"),
        ("own.py:brief", {"config": {"limit": 1}}, "'own.py:brief' already has its options; remove config"),
        ("own.py:safe", {"scope": "turn"}, "already has its options; remove scope"),
        ("polite.yaml", {"temperature": 0.5}, "'polite.yaml' already has its options; remove temperature"),
        ("polite.yaml", {"settings": {"seed": 1}}, "remove settings"),
        ("own.py:mine", {"model": "openai:x"}, "'own.py:mine' already has a judge; remove model"),
        ("safety", {"model": "nobody:x"}, "8:5 graders.it.model: "),
        ("safety", {"model": "openai:gpt-4.1-mini"}, "8:5 graders.it.model: "),
        ("safety", {"model": "openai:x", "api_key_env": "MY_KEY"}, "set the environment variable MY_KEY"),
    ],
)
def test_a_mistake_is_told_at_its_place_before_anybody_is_asked(
    metric: str, more: Row, complaint: str, server: LoopbackServer
) -> None:
    with pytest.raises(UsageError) as caught:
        run_suite(suite(metric, **more))
    assert complaint in str(caught.value)
    assert "sk-1" not in str(caught.value)
    assert server.requests == []
    with Store.open(settings().store) as store:
        assert store.runs() == []


def test_a_mistake_in_the_file_of_a_metric_has_its_place_there() -> None:
    Path("polite.yaml").write_text(POLITE.replace("goal", "gaol"))
    with pytest.raises(UsageError, match=r"polite\.yaml:2:1 prompt: .*gaol.*used by suite\.yaml:6:5"):
        run_suite(suite("polite.yaml"))
    Path("own.py").write_text("def polite(messages):\n    return 1\n1 / 0\n")
    with pytest.raises(UsageError, match=r"own\.py:3 raises ZeroDivisionError"):
        run_suite(suite("own.py:polite"))


def test_the_judge_is_that_of_the_suite_else_its_own_else_that_of_the_environment(
    model: str, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_requests() -> list[str]:
        return [request.body["model"] for request in server.requests]

    monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#default")
    Path("polite.yaml").write_text(f"{POLITE}model: '{server.base_url}#own'\n")
    run_suite(suite("polite.yaml", model=model))
    run_suite(suite("polite.yaml"))
    run_suite(suite("safety"))
    assert list_requests() == ["judge", "judge", "own", "own", "default", "default"]
    assert grades(run_suite(suite("own.py:mine")))["ann"].reason == "mine"
    assert len(list_requests()) == 6


@pytest.mark.parametrize("metric", ["safety", "own.py:Mild", "own.py:safe", "own.py:panel", "polite.yaml"])
def test_a_judge_that_is_needed_and_not_named_is_an_error_before_anything_runs(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = rf"suite\.yaml:6:5 graders\.it\.metric: '{metric}' needs a judge, but none is configured: write model: in"
    for run in (lambda: run_suite(suite(metric)), lambda: check_suite(load_suite(suite(metric)))):
        with pytest.raises(UsageError, match=text):
            run()
    with Store.open(settings().store) as store:
        assert store.runs() == []
    monkeypatch.setenv("VIVAVOCE_JUDGE", "http://localhost:1/v1#m")
    assert check_suite(load_suite(suite(metric))).verdicts > 0


@pytest.mark.parametrize(("scope", "more"), [("turn", {}), ("window", {"config": {"window": 2}})])
def test_a_scope_gives_grades_of_turns_and_is_counted_in_forecast_and_budget(
    scope: str, more: Row, model: str, server: LoopbackServer
) -> None:
    path = suite("safety", model=model, scope=scope, **more)
    assert check_suite(load_suite(path)).verdicts == 3
    assert run_suite(path, RunOptions(max_calls=2)).summary.attempts == 1
    result = run_suite(path, RunOptions(max_calls=3))
    turns = {name: [(t.turn, t.value) for t in g.turns or ()] for name, g in grades(result).items()}
    assert turns == {"ann": [(0, 1.0)], "bob": [(0, 1.0), (1, 0.0)]}
    assert len(server.requests) == 3


def test_the_votes_of_a_panel_are_counted_in_forecast_and_budget(model: str, server: LoopbackServer) -> None:
    path = suite("own.py:panel", model=model)
    assert check_suite(load_suite(path)).verdicts == 6
    result = run_suite(path, RunOptions(max_calls=5))
    assert (result.summary.attempts, len(server.requests), result.exit_code) == (1, 3, 3)


def test_a_limit_does_not_go_with_a_judge_that_has_its_own_budget() -> None:
    with pytest.raises(UsageError, match=r"graders\.it.*needs a judge given by name; mine has its own budget"):
        run_suite(suite("own.py:mine"), RunOptions(max_calls=100))


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ({"value": 0.25}, "pass"),
        ({"value": 0.3}, "fail"),
        ({"aggregation": "accuracy", "value": 50, "pass_threshold": 0.5}, "pass"),
        ({"aggregation": "accuracy", "value": 50}, "pass"),
        ({"aggregation": "accuracy", "value": 50, "pass_threshold": 0.6}, "fail"),
        ({"aggregation": "max", "op": "eq", "value": 0.5}, "pass"),
    ],
)
def test_categories_are_their_rank_in_a_gate(gate: Row, verdict: str, model: str) -> None:
    result = run_suite(suite("polite.yaml", {"metric_key": "it", **gate}, model=model))
    assert result.summary.verdict == verdict
    assert result.summary.grader("it").pass_rate == 0.5


def test_a_count_with_a_threshold_passes_or_not(model: str) -> None:
    result = run_suite(suite("turn_count", {"metric_key": "it", "value": 0.5}, config={"threshold": 1}))
    assert values(result) == {"ann": 1.0, "bob": 0.0}
    assert grades(result)["bob"].raw == 2.0
    assert result.summary.verdict == "pass"


async def test_grading_again_asks_the_metric_again(model: str, server: LoopbackServer) -> None:
    run = run_suite(suite("safety", model=model)).run.id
    with Store.open(settings().store) as store:
        again = await open_regrading(run, store=store).execute()
        assert len(server.requests) == 2, "the answers were kept"
        mild = suite("own.py:Mild", model=model, scope="turn")
        other = await open_regrading(run, load_suite(mild), store=store).execute()
        replayed = await open_regrading(run, options=RunOptions(replay=True), store=store).execute()
    assert values(again) == values(replayed) == {"ann": 1.0, "bob": 0.0}
    assert [len(grade.turns or ()) for grade in grades(other).values()] == [1, 2]


def prints(metric: str, **more: Any) -> str:
    return run_suite(suite(metric, **more), RunOptions(replay=True)).grading.fingerprints["it"]


def test_a_fingerprint_changes_with_all_that_decides_a_score_and_nothing_else(model: str) -> None:
    Path("a.jinja").write_text("Is it safe?")
    blocks = {"rules": "Is it safe?"}
    changes: list[Row] = [
        {"model": model},
        {"model": f"{model}2"},
        {"model": model, "temperature": 0.5},
        {"model": model, "settings": {"seed": 1}},
        {"model": model, "scope": "turn"},
        {"model": model, "config": {"tokens": 500}},
        {"model": model, "config": {"prompt_path": "a.jinja"}},
        {"model": model, "config": {"blocks": blocks}},
        {"model": model, "config": {"threshold": 0.5}},
    ]
    rows = [prints("safety", **change) for change in changes]
    assert len(set(rows)) == len(rows)
    assert rows == [prints("safety", **change) for change in changes]
    assert prints("safety", model=model, timeout=9, max_retries=1, display_name="S") == rows[0]
    Path("a.jinja").write_text("Is it kind?")
    assert prints("safety", **changes[6]) != rows[6]
    before = prints("polite.yaml", model=model)
    Path("polite.yaml").write_text(POLITE.replace("polite to", "kind to"))
    assert prints("polite.yaml", model=model) != before


def test_a_fingerprint_names_the_endpoint_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, str]] = []
    for place in ("http://one.example.com", "http://two.example.com", "http://one.example.com/v1/"):
        monkeypatch.setenv("VLLM_BASE_URL", place)
        path = suite("safety", model="vllm:judge")
        rubric = "  rubric: {kind: model_judge, model: 'vllm:judge', prompt: 'Is it good? {{ submission }}'}\n"
        path.write_text(path.read_text().replace("graders:\n", f"graders:\n{rubric}"))
        rows.append(run_suite(path, RunOptions(replay=True)).grading.fingerprints)
    assert rows[0] == rows[2]
    assert [name for name in rows[0] if rows[0][name] == rows[1][name]] == []


@pytest.mark.parametrize("name", ["Brief", "brief", "Mild", "polite", "safe"])
def test_a_fingerprint_changes_with_the_code_of_your_own(name: str, model: str) -> None:
    before = prints(f"own.py:{name}", model=model)
    assert prints(f"own.py:{name}", model=model) == before
    Path("own.py").write_text(OWN.replace("LONG = 8", "LONG = 80"))
    assert prints(f"own.py:{name}", model=model) != before


def test_a_fingerprint_changes_with_the_options_of_your_own() -> None:
    assert prints("own.py:Brief", config={"limit": 3}) != prints("own.py:Brief", config={"limit": 4})


@pytest.mark.parametrize("metric", ["own.py:Mild", "own.py:safe", "polite.yaml"])
async def test_a_run_whose_metric_has_changed_is_not_gone_on_with(metric: str, model: str) -> None:
    stopped = run_suite(suite(metric, model=model), RunOptions(max_calls=1))
    assert stopped.run.status == "interrupted"
    Path("own.py").write_text(f"{OWN}\n# another version\n")
    Path("polite.yaml").write_text(POLITE.replace("polite to", "kind to"))
    with Store.open(settings().store) as store:
        with pytest.raises(UsageError, match=r"cannot resume .*: 'it' has changed since; start a new run"):
            await reopen_run(stopped.run.id, store=store).execute()
        Path("own.py").write_text(OWN)
        Path("polite.yaml").write_text(POLITE)
        result = await reopen_run(stopped.run.id, store=store).execute()
    assert (result.summary.attempts, result.exit_code) == (2, 0)
