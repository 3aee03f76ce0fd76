"""What a judge was asked for a score, and the proof of it, over real runs with a judge over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import UsageError, work_time
from vivavoce.records.replies import JudgeExchange
from vivavoce.records.run import Outcome
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.judge_requests import judge_exchange
from vivavoce.testing import LoopbackServer
from vivavoce.work_time import interrupted_work

STORE = "kept.db"
EVIDENCE = ["hello", "see <b>you</b>"]
TALKS = """\
name: judged
driver: replay
dataset:
  rows:
    - {id: short, messages: [{role: user, content: hi}, {role: assistant, content: hello}]}
    - {id: long, messages: [{role: user, content: hi}, {role: assistant, content: hello},
                            {role: user, content: bye}, {role: assistant, content: "see <b>you</b>"}]}
graders:
"""
RUBRIC = """\
  kind:
    kind: model_judge
    prompt: "Is it kind? {{{{ submission }}}}"
    model: "{model}"
    threshold: 0.6
    scope: {scope}
"""
COMPUTED = """\
  length: {kind: metric, metric: turn_count, threshold: 1}
"""


class Judge:
    """Rates each submission, by default 0.8."""

    def __init__(self) -> None:
        self.rating = 0.8

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"reasoning": "as told", "score": self.rating, "evidence": EVIDENCE, "confidence": 0.9}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rating() -> Judge:
    return Judge()


@pytest.fixture
def judge_server(rating: Judge) -> Iterator[LoopbackServer]:
    with LoopbackServer(rating) as server:
        yield server


def ran(server: LoopbackServer, scope: str = "conversation", more: str = "", **options: Any) -> None:
    text = TALKS + RUBRIC.format(model=f"{server.base_url}#judge", scope=scope) + more
    Path("suite.yaml").write_text(text)
    run_suite("suite.yaml", RunOptions(**options), store=STORE)


def exchange(sample: str = "short", grader: str = "kind", run: str = "latest") -> tuple[JudgeExchange, Outcome]:
    with Store.open(STORE) as store:
        run_record = store.run(run)
        grading = store.grading(run_record.id)
        (outcome,) = store.outcomes(grading.id, sample_id=sample)
        return judge_exchange(store, run_record, grading, outcome, grader), outcome


def test_the_request_is_that_which_the_judge_got_and_the_reply_that_which_it_gave(judge_server: LoopbackServer) -> None:
    ran(judge_server)
    judge_exchange, _ = exchange()
    (call,) = judge_exchange.calls
    sent = next(
        request.body for request in judge_server.requests if '"hello"' in str(request.body["messages"][-1]["content"])
    )
    assert [(message.role, message.text) for message in call.messages] == [
        (message["role"], message["content"]) for message in sent["messages"]
    ]
    assert (call.model, call.settings) == (f"{judge_server.base_url}#judge", {"temperature": 0.0})
    assert json.loads(call.text or "") == call.parsed == Judge()({})
    assert call.usage is not None
    assert (call.usage.calls, call.cached, judge_exchange.missing) == (1, False, "")
    assert call.answer_schema is not None
    assert "score" in call.answer_schema["properties"]


def test_an_answer_that_was_repaired_has_the_first_one_and_what_was_wrong_with_it(judge_server: LoopbackServer) -> None:
    answers = iter(["I like it", *(Judge()({}) for _ in range(3))])
    judge_server.answer = lambda body: next(answers)
    ran(judge_server, max_concurrent=1)
    (call,) = exchange()[0].calls
    first, again = call.repair
    assert (first.role, first.text, again.role) == ("assistant", "I like it", "user")
    assert "JSON" in again.text
    assert call.usage is not None
    assert (call.applied["repaired"], call.usage.calls) == (True, 2)


def test_nobody_is_asked_for_it(judge_server: LoopbackServer) -> None:
    ran(judge_server)
    before = len(judge_server.requests)
    assert exchange()[0].calls
    assert len(judge_server.requests) == before


def test_a_reply_of_an_earlier_run_came_from_the_cache(judge_server: LoopbackServer) -> None:
    ran(judge_server)
    ran(judge_server)
    assert [call.cached for call in exchange()[0].calls] == [True]
    assert [call.cached for call in exchange(run="latest~1")[0].calls] == [False]


def test_each_turn_has_its_own_question(judge_server: LoopbackServer) -> None:
    ran(judge_server, scope="turn")
    judge_exchange, _ = exchange("long")
    assert [(judge_call.first_turn, judge_call.last_turn) for judge_call in judge_exchange.calls] == [(0, 0), (1, 1)]
    (call,) = judge_exchange.about(1).calls
    assert "see <b>you</b>" in call.messages[-1].text


def test_a_judged_metric_says_which_turn_each_question_is_about(judge_server: LoopbackServer) -> None:
    def build_met(body: dict[str, Any]) -> dict[str, Any]:
        name = body["response_format"]["json_schema"]["schema"]["properties"]
        return {key: _value(shape) for key, shape in name.items()}

    judge_server.answer = build_met
    metric = f'  aspect: {{kind: metric, metric: aspect_critic, model: "{judge_server.base_url}#judge", scope: turn'
    ran(judge_server, more=metric + ", config: {definition: Is it short?}}\n")
    result, outcome = exchange("long", "aspect")
    assert outcome.scores["aspect"].state == "scored", outcome.scores["aspect"].reason
    assert [(call.first_turn, call.last_turn) for call in result.calls] == [(0, 0), (1, 1)]


def test_the_judge_of_the_environment_is_that_which_the_score_names(
    judge_server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_server.answer = lambda body: {
        name: _value(shape) for name, shape in body["response_format"]["json_schema"]["schema"]["properties"].items()
    }
    with monkeypatch.context() as environment:
        environment.setenv("VIVAVOCE_JUDGE", f"{judge_server.base_url}#judge")
        Path("suite.yaml").write_text(
            TALKS + "  aspect: {kind: metric, metric: aspect_critic, config: {definition: x}}\n"
        )
        run_suite("suite.yaml", store=STORE)
    result, outcome = exchange(grader="aspect")
    assert outcome.scores["aspect"].state == "scored", outcome.scores["aspect"].reason
    assert [call.model for call in result.calls] == [f"{judge_server.base_url}#judge"], result.missing


def test_assertions_of_a_row_that_a_judge_decided(judge_server: LoopbackServer) -> None:
    judge_server.answer = lambda body: {
        name: _value(shape) for name, shape in body["response_format"]["json_schema"]["schema"]["properties"].items()
    }
    rows = TALKS.replace("content: hello}]}", "content: hello}], expect: {judged: It is friendly.}}", 1)
    model = f'  expect: {{kind: metric, metric: expect, model: "{judge_server.base_url}#judge"}}\n'
    Path("suite.yaml").write_text(rows + model)
    run_suite("suite.yaml", store=STORE)
    result, outcome = exchange(grader="expect")
    assert outcome.scores["expect"].state == "scored", outcome.scores["expect"].reason
    (call,) = result.calls
    assert "It is friendly." in call.messages[-1].text


def _value(shape: dict[str, Any]) -> Any:
    kinds: dict[str, Any] = {"string": "so", "boolean": True, "number": 0.5, "integer": 1, "array": EVIDENCE}
    return shape["enum"][0] if "enum" in shape else kinds.get(shape.get("type", ""))


def test_a_run_without_the_cache_says_so(judge_server: LoopbackServer) -> None:
    ran(judge_server, cache=False)
    result, _ = exchange()
    assert result.calls == []
    assert "--no-cache" in result.missing


def test_a_reply_that_gives_another_score_proves_nothing(judge_server: LoopbackServer, rating: Judge) -> None:
    ran(judge_server)
    rating.rating = 0.1
    ran(judge_server, cache=False)
    result, outcome = exchange()
    assert (outcome.scores["kind"].value, result.calls) == (0.1, [])
    assert "a different score" in result.missing


def test_a_reply_that_was_deleted_is_not_there(judge_server: LoopbackServer) -> None:
    ran(judge_server)
    with Store.open(STORE) as store, store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM replies")
    result, _ = exchange()
    assert (result.calls, "not cached" in result.missing) == ([], True)


def test_a_computed_score_has_no_judge(judge_server: LoopbackServer) -> None:
    ran(judge_server, more=COMPUTED)
    assert exchange(grader="length")[0] == JudgeExchange(
        grader="length", missing="no judge was asked: this score was computed"
    )


def test_an_error_has_no_answer(judge_server: LoopbackServer) -> None:
    judge_server.answer = lambda body: "no JSON"
    ran(judge_server)
    result, outcome = exchange()
    assert (outcome.scores["kind"].state, result.calls) == ("error", [])
    assert "only usable answers are stored" in result.missing


def test_code_of_users_is_not_run(judge_server: LoopbackServer) -> None:
    own = "  own: {kind: metric, metric: 'own.py:metric'}\n"
    Path("own.py").write_text(
        "from pathlib import Path\n"
        "from vivavoce.metrics import SafetyMetric\n"
        "Path('ran').touch()\n"
        f"metric = SafetyMetric('{judge_server.base_url}#judge')\n"
    )
    judge_server.answer = lambda body: {}
    ran(judge_server, more=own)
    Path("ran").unlink()
    with Store.open(STORE) as store:
        run_record = store.run("latest")
        grading = store.grading(run_record.id)
        (outcome,) = store.outcomes(grading.id, sample_id="short")
        skipped_score = outcome.scores["own"].model_copy(update={"state": "skipped"})
        outcome = outcome.model_copy(update={"scores": {"own": skipped_score}})
        missing = judge_exchange(store, run_record, grading, outcome, "own").missing
    assert "own.py:metric decides it" in missing
    assert not Path("ran").exists()


def test_a_name_that_is_no_grader_is_an_error(judge_server: LoopbackServer) -> None:
    ran(judge_server)
    with pytest.raises(UsageError, match="no grader 'kidn' in this conversation; did you mean 'kind'"):
        exchange(grader="kidn")


def test_checks_that_are_repeated_for_it_are_limited_like_those_of_a_conversation(
    judge_server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_server.answer = lambda body: {
        name: _value(shape) for name, shape in body["response_format"]["json_schema"]["schema"]["properties"].items()
    }
    expected = "content: hello}], expect: {all: [{judged: It is friendly.}, {regex: hel+o}]}}"
    model = f'  expect: {{kind: metric, metric: expect, model: "{judge_server.base_url}#judge"}}\n'
    Path("suite.yaml").write_text(TALKS.replace("content: hello}]}", expected, 1) + model)
    run_suite("suite.yaml", store=STORE)
    assert exchange(grader="expect")[0].calls
    monkeypatch.setattr(work_time, "CONVERSATION_SECONDS", 0.0)
    with interrupted_work():
        assert exchange(grader="expect")[0].calls == []
