"""`evaluate`: conversations of every form, metrics of every form, judges and limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import (
    ConversationHistory,
    EvaluationDataset,
    MultiTurnSample,
    RunOptions,
    Sample,
    SingleTurnSample,
    Store,
    UsageError,
    aevaluate,
    evaluate,
)
from vivavoce.metrics import AllOf, GoalAchievementJudge, SafetyMetric, ToxicityMetric
from vivavoce.metrics.custom import CategoricalScore, PromptMetric, function_metric
from vivavoce.settings import settings
from vivavoce.testing import LoopbackServer, ScriptedModel

from .talks import SAFE, Row, rows, scores, stream_rows, talk, write_rows


def count_messages(messages: list[Any]) -> float:
    """Say whether exactly one question and one answer were seen."""
    return float([message.text for message in messages] == ["Hi.", "Hello."])


ROWS: list[Row] = [{"messages": talk()}, {"messages": talk()}]
FORMS: dict[str, Any] = {
    "dicts": lambda: ROWS,
    "rows of Ragas": lambda: [{"user_input": talk()}, {"user_input": "Hi.", "response": "Hello."}],
    "samples": lambda: [
        Sample(id=str(i), messages=ConversationHistory.from_dict_list(talk()).messages) for i in range(2)
    ],
    "multi-turn samples": lambda: [MultiTurnSample.model_validate({"user_input": talk()})] * 2,
    "single-turn samples": lambda: [SingleTurnSample(user_input="Hi.", response="Hello.")] * 2,
    "histories": lambda: [ConversationHistory.from_dict_list(talk())] * 2,
    "a dataset of conversations": lambda: EvaluationDataset.from_list([{"user_input": talk()}] * 2),
    "a dataset of questions": lambda: EvaluationDataset.from_list([{"user_input": "Hi.", "response": "Hello."}] * 2),
    "a path": lambda: write_rows(ROWS),
    "a path as text, of questions": lambda: str(write_rows([{"user_input": "Hi.", "response": "Hello."}] * 2)),
    "a generator": lambda: (row for row in ROWS),
    "an async generator": lambda: stream_rows(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_conversations_come_in_any_form(form: str) -> None:
    result = evaluate(FORMS[form](), [function_metric(count_messages)])
    assert scores(result, "count_messages") == {"0": ("scored", 1.0), "1": ("scored", 1.0)}
    assert (result.run.status, result.exit_code) == ("finished", 0)


def test_a_question_with_its_response_keeps_what_was_retrieved_and_what_is_known() -> None:
    seen: list[Any] = []

    def look(messages: list[Any], reference: str, conversation: ConversationHistory) -> float:
        seen.append((messages[-1].retrieval_context, reference, conversation.conversation_id))
        return 1.0

    sample = SingleTurnSample(user_input="Q?", response="A.", retrieved_contexts=["page 1"], reference="B.")
    result = evaluate([sample], [function_metric(look)])
    assert seen == [(["page 1"], "B.", "0")]
    row = json.loads(next(result.outcomes()).attempt.sample)
    assert "response" not in row["metadata"]


def test_what_is_known_of_a_row_reaches_the_judge(server: LoopbackServer, model: str) -> None:
    server.answer = lambda body: {"violations": [], "reasoning": json.dumps(body["messages"]), "confidence": 1}
    fields = {"goal": "A pony", "context": {"role": "vet"}, "must": ["say neigh"]}
    prompt = "{{ goal }} {{ context.role }} {{ must }}"
    metric = SafetyMetric(name="asked", blocks={"rules": prompt})
    result = evaluate([{"messages": talk(), **fields}], [metric], model=model)
    rationale = next(result.outcomes()).scores["asked"].reason or ""
    assert all(word in rationale for word in ("A pony", "vet", "say neigh"))


def test_of_no_conversations_nothing_is_decided() -> None:
    result = evaluate([], ["refusal"])
    assert (result.summary.attempts, result.summary.verdict, result.exit_code) == (0, "inconclusive", 3)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"messages": talk(), "goals": "x"}, "unknown key 'goals'; did you mean 'goal'?"),
        ({"messages": []}, "'messages' is empty: nothing was recorded"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "role"),
        ({"input": "Hi."}, "no conversation to measure; give 'messages', or 'user_input' with its"),
        ({"user_input": "Hi.", "response": "Oh.", "retrieved_contexts": 3}, "retrieval_context"),
        (SingleTurnSample(user_input="Hi."), "no conversation to measure"),
        ("Hi.", "a row is a dict with 'messages', a sample or a ConversationHistory; got str"),
        (None, "got NoneType"),
        ({"id": "a", "messages": talk()}, "the id 'a' is already used"),
    ],
)
def test_a_row_that_is_no_conversation_is_named_and_those_before_it_are_kept(row: Any, complaint: str) -> None:
    arguments = [{"id": "a", "messages": talk()}, {"messages": talk()}, row, {"messages": talk()}]
    with pytest.raises(UsageError) as caught:
        evaluate(arguments, ["refusal"])
    first, last = str(caught.value).splitlines()
    assert first.startswith("row 2: ")
    assert complaint in first
    with Store.open(settings().store) as store:
        run = store.run("latest")
        assert store.counts(run.id) == (2, 0)
    assert last == f"finished conversations are stored; continue with resume='{run.id}'"
    result = evaluate([*arguments[:2], *arguments[3:]], ["refusal"], resume=run.id)
    assert (result.summary.attempts, result.run.status) == (3, "finished")


def test_a_line_of_a_file_that_is_no_conversation_is_named_by_its_line() -> None:
    path = write_rows([*rows(3), {"id": "bad", "messages": "none"}])
    with pytest.raises(UsageError, match=r"talks\.jsonl:4 messages"):
        evaluate(path, ["refusal"])


@pytest.mark.parametrize("path", ["gone.jsonl", "talks.txt", "bad.jsonl"])
def test_a_file_that_cannot_be_read_begins_no_run(path: str) -> None:
    Path("talks.txt").write_text("Hi.")
    Path("bad.jsonl").write_text("Hi.\n")
    with pytest.raises(UsageError, match=path):
        evaluate(path, ["refusal"])
    with Store.open(settings().store) as store:
        assert store.runs() == []


def test_what_the_source_of_the_rows_raises_comes_through_and_what_was_measured_is_kept() -> None:
    def source() -> Iterator[Row]:
        yield from rows(3)
        raise ConnectionError("the database is gone")

    with pytest.raises(ConnectionError, match="the database is gone") as caught:
        evaluate(source(), ["refusal"])
    (note,) = caught.value.__notes__
    with Store.open(settings().store) as store:
        run = store.run("latest")
        assert store.counts(run.id) == (3, 0)
    assert f"resume='{run.id}'" in note


def test_metrics_come_by_name_by_class_name_and_made_with_options(model: str) -> None:
    strict = ToxicityMetric(model, name="strict", threshold=0.0)
    result = evaluate(rows(4), ["safety", "ToxicityMetric", strict, function_metric(count_messages)], model=model)
    rates = {grader.name: (grader.scored, grader.pass_rate) for grader in result.summary.graders}
    assert rates == {"safety": (4, 0.75), "toxicity": (4, 0.75), "strict": (4, 0.75), "count_messages": (4, 0.0)}
    spec = result.run.spec["graders"]
    assert [spec[name]["metric"] for name in rates] == [
        "safety",
        "ToxicityMetric",
        "(given in Python: ToxicityMetric)",
        "(given in Python: FunctionMetric)",
    ]
    assert (spec["safety"]["model"], spec["strict"]["model"], spec["count_messages"].get("model")) == (
        model,
        model,
        None,
    )


def test_the_metric_says_which_of_its_scores_pass_whatever_their_value() -> None:
    labels = CategoricalScore(categories=("cold", "polite", "chatty"), passing=("polite",))
    for label, value, passed in (("cold", 0.0, False), ("polite", 0.5, True), ("chatty", 1.0, False)):
        reply = {"reasoning": "So it is.", "evidence": ["Answer 0."], "confidence": 1.0, "label": label}
        tone = PromptMetric(ScriptedModel([reply], label), name="tone", prompt="How is it?", score=labels)
        result = evaluate(rows(1), [tone])
        (score,) = (outcome.scores["tone"] for outcome in result.outcomes())
        assert (score.raw, score.value, score.passed) == (label, value, passed)
        assert result.summary.grader("tone").pass_rate == float(passed)


@pytest.mark.parametrize(
    ("metrics", "complaint"),
    [
        ([], "evaluate needs at least one metric"),
        (["saftey"], "did you mean 'safety'?"),
        (["safety", SafetyMetric()], "two metrics are called 'safety'; give one of them another name="),
        ([SafetyMetric], "got the class SafetyMetric; create an instance of it"),
        ([count_messages], "expected a metric object, a name or a mapping; got function"),
    ],
)
def test_metrics_that_cannot_be_used_are_told_before_anything_is_recorded(metrics: list[Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("?", r"\?")):
        evaluate(rows(1), metrics)
    with Store.open(settings().store) as store:
        assert store.runs() == []


def test_a_metric_without_a_judge_gets_the_one_that_is_given_and_stays_as_it_was() -> None:
    mine, judge_model = ScriptedModel(lambda _: SAFE, "mine"), ScriptedModel(lambda _: SAFE, "given")
    judge_model.anonymous = mine.anonymous = False  # as a model of a provider, whose replies are cached
    without, own = SafetyMetric(), SafetyMetric(mine, name="own")
    before = without.fingerprint, own.fingerprint
    both = AllOf(without, own, name="both")
    evaluate(rows(1), [without, own, both], model=judge_model)
    assert len(judge_model.requests) == 1, "the same question of two metrics is asked once"
    assert len(mine.requests) == 1
    assert (without.model, own.model) == (None, mine)
    assert both.parts == (without, own)
    assert (without.fingerprint, own.fingerprint) == before


@pytest.mark.parametrize("metric", ["safety", SafetyMetric(name="safety"), AllOf("refusal", "safety", name="safety")])
def test_without_a_judge_nothing_is_measured(metric: Any) -> None:
    with pytest.raises(UsageError, match="the metric 'safety' needs a judge: give a model, or set VIVAVOCE_JUDGE"):
        evaluate(rows(2), ["refusal", metric])
    with Store.open(settings().store) as store:
        assert store.browse.runs().runs == []


def test_the_judge_of_the_environment_is_taken_where_none_is_given(
    server: LoopbackServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", model)
    assert evaluate(rows(4), ["safety"]).summary.grader("safety").scored == 4
    assert len(server.requests) == 4


def test_a_judge_that_nobody_asks_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai:gpt-4.1-mini")
    assert evaluate(rows(1), ["refusal"]).exit_code == 0
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        evaluate(rows(1), ["safety"])


def test_the_rate_of_success_has_its_interval(model: str) -> None:
    safety = evaluate(rows(20), ["safety"], model=model).summary.grader("safety")
    assert (safety.scored, safety.samples, safety.pass_rate) == (20, 20, 0.75)
    assert safety.pass_low is not None
    assert safety.pass_high is not None
    assert 0.4 < safety.pass_low < 0.75 < safety.pass_high < 1.0


def test_success_goes_by_the_passing_categories_of_the_metric(server: LoopbackServer, model: str) -> None:
    levels = ["poor", "fair", "good"]

    def choose(body: Row) -> Row:
        text = body["messages"][-1]["content"]
        met = "Answer 1." in text
        outcome: Row = {"outcome": "told", "kind": "fact", "evidence": ["Answer 1."] if met else [], "met": met}
        level = "fair" if met else "poor"
        return {**_goal([outcome]), "achievement_level": level}

    server.answer = choose
    lenient = GoalAchievementJudge(name="lenient", categories=levels, passing_categories=["fair", "good"])
    strict = GoalAchievementJudge(name="strict", categories=levels)
    arguments = [{**row, "goal": "An answer"} for row in rows(3)]
    result = evaluate(arguments, [lenient, strict], model=model)
    passed = result.summary.grader("lenient")
    assert (passed.mean, passed.pass_rate) == (pytest.approx(0.5 / 3), pytest.approx(1 / 3))
    assert result.summary.grader("strict").pass_rate == pytest.approx(1 / 3)


def _goal(criteria: list[Row]) -> Row:
    return {"criteria": criteria, "breaches": [], "reasoning": "", "confidence": 1.0}


def test_success_goes_by_the_threshold_where_lower_is_better(server: LoopbackServer, model: str) -> None:
    answers = iter((1, 2, 3, 4, 5))
    server.answer = lambda _: {"reasoning": "", "evidence": [], "score": next(answers), "confidence": 1}
    score = {"kind": "numeric", "min": 1, "max": 5, "threshold": 2, "direction": "lower_is_better"}
    rude = PromptMetric(name="rude", prompt="How rude?", score=score)
    graded = evaluate(rows(5), [rude], model=model, max_concurrent=1).summary.grader("rude")
    assert (graded.mean, graded.pass_rate) == (0.5, 0.4)


def test_a_limit_of_calls_stops_the_run_and_the_rest_can_follow(server: LoopbackServer, model: str) -> None:
    limited = evaluate(rows(8), ["safety"], model=model, options=RunOptions(max_calls=5))
    assert (limited.stopped_by, limited.exit_code) == ("the limit of 5 calls is reached", 3)
    assert (limited.summary.attempts, len(server.requests)) == (5, 5)
    result = evaluate(rows(8), ["safety"], model=model, resume=limited.run.id)
    assert (result.summary.grader("safety").scored, result.exit_code, len(server.requests)) == (8, 0, 8)


def test_a_limit_of_the_cost_counts_what_the_judge_says_it_used(
    server: LoopbackServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"the price of .* is unknown"):
        evaluate(rows(1), ["safety"], model=model, options=RunOptions(max_cost=1))
    Path("prices.json").write_text(json.dumps({"models": {model: {"input": 1000, "output": 0}}}))
    monkeypatch.setenv("VIVAVOCE_PRICES", "prices.json")
    used = {"prompt_tokens": 100, "completion_tokens": 1}
    server.answer = lambda _: {"choices": [{"message": {"content": json.dumps(SAFE)}}], "usage": used}
    limited = evaluate(rows(40), ["safety"], model=model, options=RunOptions(max_cost=3.5), max_concurrent=2)
    assert limited.exit_code == 3
    assert 0 < len(server.requests) * 0.1 <= 3.5
    assert limited.summary.attempts == len(server.requests)


@pytest.mark.parametrize("options", [RunOptions(max_calls=5), RunOptions(max_cost=1)])
def test_a_limit_does_not_go_with_a_judge_that_has_its_own_budget(options: RunOptions) -> None:
    unused_model = ScriptedModel([])
    for metrics, model in (
        (["safety"], unused_model),
        ([SafetyMetric(unused_model)], None),
        ([AllOf(SafetyMetric(unused_model))], None),
    ):
        with pytest.raises(UsageError, match="needs a judge given by name; scripted has its own budget"):
            evaluate(rows(1), metrics, model=model, options=options)
    assert evaluate(rows(1), ["refusal"], model=unused_model, options=options).exit_code == 0


@pytest.mark.parametrize("name", ["trials", "max_samples", "tags", "samples", "max_concurrent"])
def test_options_that_choose_among_samples_are_refused(name: str) -> None:
    options = RunOptions.model_validate({name: ["x"] if name in ("tags", "samples") else 1})
    with pytest.raises(UsageError, match=f"RunOptions.{name} is for suites"):
        evaluate(rows(1), ["refusal"], options=options)


async def test_it_works_where_an_event_loop_is_running(model: str) -> None:
    assert evaluate(rows(2), ["safety"], model=model).summary.grader("safety").scored == 2
    assert (await aevaluate(rows(2), ["safety"], model=model)).summary.grader("safety").scored == 2


def test_a_verdict_that_a_metric_of_your_own_cannot_give_is_an_error() -> None:
    def breaks(messages: list[Any]) -> float:
        raise ZeroDivisionError("by zero")

    def lies(messages: list[Any]) -> float:
        return 3.0

    result = evaluate(rows(2), [function_metric(breaks), function_metric(lies), "refusal"])
    graders = {grader.name: (grader.scored, grader.errors) for grader in result.summary.graders}
    assert graders == {"breaks": (0, 2), "lies": (0, 2), "refusal": (2, 0)}
    assert result.exit_code == 3
