"""Assertions of rows that a judge decides: in suites, in `viva judge` and in `evaluate`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.errors import UsageError
from vivavoce.features.batches.export import write_requests
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import open_regrading, run_suite, suite_run
from vivavoce.suites.load import load_suite
from vivavoce.testing import LoopbackServer

from .talks import Row, stream_rows, talk

POLITE = "The assistant is polite."


def judge(body: Row) -> Row:
    """Say of what is rude that it is not polite."""
    polite = "rude" not in body["messages"][-1]["content"]
    evidence = re.findall(r'^assistant: "(.*)"$', body["messages"][1]["content"], re.MULTILINE)
    return {"reasoning": "So it is.", "evidence": evidence, "verdict": polite, "confidence": 0.9}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(judge) as server:
        yield server


@pytest.fixture
def model(server: LoopbackServer) -> str:
    return f"{server.base_url}#judge"


def row(name: str, answer: str = "Hello.", **more: Any) -> Row:
    return {"id": name, "messages": talk(answer), "expect": [[{"judged": POLITE}, {"contains": answer[:3]}]], **more}


def suite(*rows: Row, graders: str = "") -> Path:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(f"name: a\ndriver: replay\ndataset: rows.jsonl\n{graders}")
    return Path("suite.yaml")


def by(model: str) -> str:
    return f"graders:\n  expect: {{kind: metric, metric: expect, model: '{model}'}}\n"


def reasons(result: RunResult) -> dict[str, str | None]:
    return {outcome.attempt.key.sample_id: outcome.scores["expect"].reason for outcome in result.outcomes()}


def test_the_default_judge_is_asked(monkeypatch: pytest.MonkeyPatch, model: str, server: LoopbackServer) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", model)
    path = suite(row("kind"), row("rude", "Be off, rude man."))
    assert check_suite(load_suite(path)).verdicts == 2
    result = run_suite(path)
    assert (result.exit_code, len(server.requests)) == (1, 2)
    assert reasons(result) == {
        "kind": "2 of 2 assertions hold",
        "rude": f"turn 1: '{POLITE}' does not hold: So it is., said 'Be off, rude man.'",
    }
    assert run_suite(path).exit_code == 1
    assert len(server.requests) == 2, "the answers are kept"


def test_the_grader_names_another_judge_and_calls_are_limited(model: str, server: LoopbackServer) -> None:
    path = suite(row("a"), row("b", "Good day."), graders=by(model))
    assert run_suite(path, RunOptions(max_calls=1)).summary.attempts == 1
    result = run_suite(path, RunOptions(max_calls=2, cache=False))
    assert (result.exit_code, len(server.requests)) == (0, 3)
    assert next(iter(result.outcomes())).scores["expect"].usage is not None


def test_no_judge_is_a_mistake_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIVAVOCE_JUDGE", raising=False)
    with pytest.raises(UsageError, match="need a judge, but none is configured: set VIVAVOCE_JUDGE"):
        check_suite(load_suite(suite(row("a"))))
    own = "graders:\n  expect: {kind: function, function: expect}\n"
    with pytest.raises(UsageError, match=r"suite\.yaml:5:\d+ graders\.expect\S* rows have assertions"):
        check_suite(load_suite(suite(row("a"), graders=own)))


def test_the_grader_says_with_which_settings(model: str, server: LoopbackServer) -> None:
    run_suite(suite(row("a"), graders=by(model).replace("}", ", temperature: 0.7, settings: {seed: 3}}")))
    evaluate([row("a")], [{"metric": "expect", "settings": {"top_p": 0.5}}], model=model)
    first, second = (request.body for request in server.requests)
    assert (first["temperature"], first["seed"]) == (0.7, 3)
    assert (second["temperature"], second["top_p"]) == (0.0, 0.5)


def test_rows_that_ask_nobody_need_no_judge_and_have_the_same_fingerprint(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    exact = {"id": "a", "messages": talk(), "expect": {"contains": "hello"}}
    first = run_suite(suite(exact))
    monkeypatch.setenv("VIVAVOCE_JUDGE", model)
    second = run_suite(suite(exact))
    assert first.grading.fingerprints == second.grading.fingerprints
    assert run_suite(suite(row("b"))).grading.fingerprints != first.grading.fingerprints


def test_a_stored_run_is_graded_again_by_the_same_judge(
    monkeypatch: pytest.MonkeyPatch, model: str, server: LoopbackServer
) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", model)
    first = run_suite(suite(row("kind"), row("rude", "Be off, rude man.")))
    with Store.open(settings().store) as store:
        again = asyncio.run(open_regrading(first.run.id, store=store).execute())
    assert again.grading.fingerprints == first.grading.fingerprints
    assert (reasons(again), again.exit_code) == (reasons(first), 1)
    assert len(server.requests) == 2


def test_the_judge_of_the_command_judges_rows_too(model: str, server: LoopbackServer) -> None:
    suite(row("a"), row("b", "So rude."))
    judging = judging_suite(Path("rows.jsonl"), ["refusal"], model)
    with Store.open(settings().store) as store:
        result = asyncio.run(suite_run(judging, RunOptions(), store=store).execute())
        again = asyncio.run(open_regrading(result.run.id, store=store).execute())
    assert [grader.name for grader in result.summary.graders] == ["refusal", "expect"]
    assert (result.exit_code, again.exit_code, len(server.requests)) == (1, 1, 2)


def test_questions_are_exported_for_a_batch(model: str, server: LoopbackServer) -> None:
    path = suite(row("a"), row("b", "Good day."), graders=by(model))
    with Store.open(settings().store) as store:
        exported = asyncio.run(write_requests(load_suite(path), "openai:gpt-4o", Path("q.jsonl"), store, RunOptions()))
    assert (exported.questions, exported.broken, server.requests) == (2, (), [])


ROWS = [row("kind"), row("rude", "Be off, rude man."), {"id": "plain", "messages": talk()}]


@pytest.mark.parametrize("form", ["list", "file"])
def test_evaluate_adds_the_grader_and_a_miss_fails(form: str, model: str, server: LoopbackServer) -> None:
    suite(*ROWS)
    data = ROWS if form == "list" else "rows.jsonl"
    result = evaluate(data, ["refusal"], model=model)
    assert (result.exit_code, result.summary.verdict) == (1, "fail")
    [_, grader] = result.summary.graders
    assert (grader.name, grader.scored, grader.skipped, grader.pass_rate) == ("expect", 2, 1, 0.5)
    assert result.run.spec["graders"]["expect"]["model"] == model
    assert evaluate(ROWS[:1], [], model=model).exit_code == 0
    assert len(server.requests) == 2


def test_evaluate_leaves_rows_without_assertions_as_they_were() -> None:
    result = evaluate(ROWS[2:], ["refusal"])
    assert ([grader.name for grader in result.summary.graders], result.summary.verdict) == (["refusal"], None)
    with pytest.raises(UsageError, match="evaluate needs at least one metric"):
        evaluate(ROWS[2:], [])


def test_a_metric_that_is_named_is_not_added_again(model: str) -> None:
    half = {"metric": "expect", "name": "half", "threshold": 0.5}
    result = evaluate(ROWS, [half], model=model)
    assert [(grader.name, grader.pass_rate) for grader in result.summary.graders] == [("half", 1.0)]
    assert result.exit_code == 0


@pytest.mark.parametrize("form", ["list", "file"])
def test_mistakes_are_found_before_anything_runs(form: str) -> None:
    wrong = [*ROWS, {**row("wrong"), "expect": [{"contians": "a"}]}]
    suite(*wrong)
    where = "row 3: " if form == "list" else "rows.jsonl:4 "
    with pytest.raises(UsageError) as raised:
        evaluate(wrong if form == "list" else "rows.jsonl", ["refusal"])
    assert str(raised.value) == f"{where}expect.0: no assertion 'contians'; did you mean 'contains'?"
    with Store.open(settings().store) as store:
        assert store.runs() == []


def test_without_a_judge_evaluate_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIVAVOCE_JUDGE", raising=False)
    with pytest.raises(UsageError, match="rows have assertions that need a judge: give a model, or set"):
        evaluate(ROWS, ["refusal"])


@pytest.mark.parametrize("form", [iter, stream_rows])
def test_a_stream_is_graded_by_its_assertions_where_they_are_named(form: Any, model: str) -> None:
    result = evaluate(form(ROWS), ["expect"], model=model)
    assert (result.exit_code, result.summary.graders[0].scored) == (1, 2)
    with pytest.raises(UsageError, match=r"row 0: the row has 'expect'.*name the metric 'expect', too"):
        evaluate(form(ROWS), ["refusal"])
