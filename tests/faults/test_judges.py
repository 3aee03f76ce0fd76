"""A judge that misbehaves is an error of its own verdict, with the cause; no score is wrong, and none is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunResult, Store, evaluate, run_suite
from vivavoce.metrics import SafetyMetric
from vivavoce.models.openai import OpenAIModel
from vivavoce.records.score import Score
from vivavoce.settings import settings
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import body as answers
from vivavoce.testing.misbehaviour import broken_json, hang, html, rate_limited, reset, server_error, status
from vivavoce.wire.http import Limits

Row = dict[str, Any]
Fault = Callable[[], Any]
SAFE: Row = {"violations": [], "reasoning": "Fine.", "confidence": 1.0}


def harm(severity: str, *evidence: str) -> Row:
    return {"violations": [{"what": "It told.", "evidence": list(evidence), "severity": severity}]}


def verdict(body: Row) -> Row:
    return {**SAFE, **(harm("critical", "poison") if "poison" in body["messages"][1]["content"] else {})}


def talk(text: str) -> list[Row]:
    return [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": text}]


def judged(
    server: LoopbackServer,
    rows: list[Row],
    *,
    tries: int = 2,
    concurrency: int = 8,
    metric: SafetyMetric | None = None,
    timeout: float = 60.0,
) -> RunResult:
    limits = Limits(timeout=timeout, concurrency=concurrency)
    model = OpenAIModel("judge", base_url=server.base_url, api_key="sk-secret", tries=tries, limits=limits)
    return evaluate(rows, [metric or SafetyMetric()], model=model, max_concurrent=concurrency)


def calls(grade: Score) -> int:
    return grade.usage.calls if grade.usage else 0


def grades(result: RunResult) -> dict[str, Score]:
    return {outcome.attempt.key.sample_id: outcome.scores["safety"] for outcome in result.outcomes()}


def completion(message: Row, reason: str = "stop") -> Row:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}]}


FAULTS: dict[str, tuple[Fault, str, str, int]] = {
    "is always busy": (lambda: rate_limited(0.001), "rate_limit", "429", 10),
    "is busy for an hour": (lambda: rate_limited(3600), "rate_limit", "429", 1),
    "breaks": (server_error, "http", "500", 2),
    "hangs": (hang, "timeout", "no answer within 0.5 s", 2),
    "drops the connection": (reset, "connection", "connection broke", 2),
    "is a login wall": (html, "format", "is not JSON", 1),
    "stops in the middle": (broken_json, "format", "is not JSON", 1),
    "has no choices": (lambda: answers('{"choices": []}'), "format", "choices", 1),
    "says nothing": (lambda: completion({"content": None}), "format", "outside the JSON schema", 2),
    "answers in prose": (lambda: "I think it was a fine talk, 9/10.", "format", "twice answered outside", 2),
    "answers another question": (lambda: {"score": 1}, "format", "twice answered outside", 2),
    "lacks a field": (lambda: {"violations": []}, "format", "reasoning", 2),
    "adds a field": (lambda: {**SAFE, "score": 1}, "format", "twice answered outside", 2),
    "is too sure": (lambda: {**SAFE, "confidence": 7}, "format", "confidence", 2),
    "is not a number": (lambda: {**SAFE, "confidence": float("nan")}, "format", "NaN", 2),
    "finds harm without evidence": (lambda: {**SAFE, **harm("minor")}, "format", "evidence", 2),
    "knows another severity": (lambda: {**SAFE, **harm("mild", "x")}, "format", "severity", 2),
    "declines": (lambda: completion({"content": None, "refusal": "I would rather not."}), "refusal", "declined", 1),
    "is filtered": (lambda: completion({"content": ""}, "content_filter"), "refusal", "declined", 1),
    "is cut off": (lambda: completion({"content": '{"violations": ['}, "length"), "format", "cut off", 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_bad_answer_is_an_error_of_its_own_verdict_only(name: str) -> None:
    fault, kind, said, most = FAULTS[name]
    rows = [{"id": f"r{i}", "messages": talk(["fine", "poison", "bad"][i % 3] + f" {i}")} for i in range(6)]
    del rows[5]
    with LoopbackServer(lambda body: fault() if "bad" in body["messages"][1]["content"] else verdict(body)) as server:
        result = judged(server, rows, timeout=0.5 if fault is hang else 60.0)
    found = grades(result)
    assert [found[f"r{i}"].value for i in range(5)] == [1.0, 0.0, None, 1.0, 0.0]
    safety = result.summary.grader("safety")
    assert (safety.scored, safety.errors, safety.mean, safety.pass_rate) == (4, 1, 0.5, 0.5)
    failure = found["r2"].failure
    assert failure is not None
    assert (failure.blame, failure.kind) == ("judge", kind)
    assert said in failure.message + (failure.evidence or "")
    assert "sk-secret" not in failure.message + (failure.evidence or "")
    asked = sum("bad" in request.body["messages"][1]["content"] for request in server.requests)
    assert asked <= most
    answered = asked if kind in ("format", "refusal") else 0
    assert calls(found["r2"]) == answered, "every answer that came is a call"


PASSING: dict[str, tuple[Fault, int]] = {
    "was busy": (lambda: rate_limited(0.01), 2),
    "broke once": (server_error, 2),
    "dropped the connection once": (reset, 2),
    "answered in prose once": (lambda: "Fine, I would say.", 2),
    "missed the schema once": (lambda: {"violations": "none"}, 2),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_costs_one_more_request(name: str) -> None:
    fault, requests = PASSING[name]
    seen: Counter[str] = Counter()

    def answer(body: Row) -> Any:
        asked = body["messages"][1]["content"]
        seen[asked] += 1
        return fault() if seen[asked] == 1 else verdict(body)

    rows = [{"id": "safe", "messages": talk("fine")}, {"id": "harm", "messages": talk("poison")}]
    with LoopbackServer(answer) as server:
        result = judged(server, rows)
    assert {name: grade.value for name, grade in grades(result).items()} == {"safe": 1.0, "harm": 0.0}
    assert set(seen.values()) == {requests}
    paid = 2 if name in ("answered in prose once", "missed the schema once") else 1
    assert [calls(grade) for grade in grades(result).values()] == [paid, paid], "every answer that came is a call"


def test_where_one_of_many_questions_fails_the_others_are_paid_for_and_kept() -> None:
    messages = [message for i in range(4) for message in talk("bad" if i == 0 else f"fine {i}")]
    with LoopbackServer(lambda body: SAFE if "fine" in body["messages"][1]["content"] else "prose") as server:
        (grade,) = grades(
            judged(server, [{"id": "r", "messages": messages}], metric=SafetyMetric(scope="turn"))
        ).values()
        assert (grade.state, len(server.requests), calls(grade)) == ("error", 5, 5)
        with Store.open(settings().store) as store:
            assert len(list(store.replies().all())) == 3


def test_what_a_rubric_was_answered_counts_where_it_is_no_verdict() -> None:
    Path("talks.jsonl").write_text(json.dumps({"id": "r", "messages": talk("Hi.")}))
    with LoopbackServer(lambda body: "prose") as server:
        Path("suite.yaml").write_text(
            "name: s\ndataset: talks.jsonl\ndriver: replay\ngraders:\n"
            f"  safety: {{kind: model_judge, model: '{server.base_url}#m', prompt: 'Well? {{{{ submission }}}}'}}\n"
        )
        (grade,) = grades(run_suite("suite.yaml")).values()
    assert (grade.state, calls(grade)) == ("error", 2)


def test_among_many_faults_every_verdict_is_right_or_an_error_and_none_is_lost() -> None:
    count = 300
    seen: Counter[str] = Counter()
    once: dict[int, Fault] = {
        **dict.fromkeys((0, 7), lambda: rate_limited(0.02)),
        3: server_error,
        11: lambda: "garbage",
        17: reset,
    }

    def answer(body: Row) -> Any:
        asked = body["messages"][1]["content"]
        seen[asked] += 1
        number = int(asked.rpartition("number ")[2].split('"')[0])
        return once[number % 20]() if seen[asked] == 1 and number % 20 in once else verdict(body)

    rows = [{"id": str(i), "messages": talk(f"{'poison' if i % 3 else 'fine'} number {i}")} for i in range(count)]
    with LoopbackServer(answer) as server:
        found = grades(judged(server, rows, tries=4, concurrency=32))
    assert len(found) == count
    assert {i: found[str(i)].value for i in range(count)} == {i: float(i % 3 == 0) for i in range(count)}
    assert len(server.requests) <= 1.5 * count
    assert server.connections <= 32 + 2 + count // 20, "each connection that broke is replaced"


@pytest.mark.parametrize(
    ("code", "said"),
    [(401, "check the API key"), (403, "check the API key"), (404, "check the name of the model, 'judge'")],
)
def test_what_every_call_would_meet_is_not_asked_again_and_again(code: int, said: str) -> None:
    rows = [{"id": str(i), "messages": talk(f"fine {i}")} for i in range(60)]
    refusal = '{"error": {"message": "sk-secret is not a key"}}'
    with LoopbackServer(lambda _: status(code, refusal)) as server:
        result = judged(server, rows, concurrency=2)
    safety = result.summary.grader("safety")
    assert (safety.scored, safety.errors, result.exit_code) == (0, 60, 3)
    assert len(server.requests) <= 5 + 2
    messages = [grade.failure.message for grade in grades(result).values() if grade.failure]
    assert all(said in message and str(code) in message for message in messages)
    assert sum("not called" in message for message in messages) >= 53
    assert "sk-secret" not in json.dumps([outcome.model_dump(mode="json") for outcome in result.outcomes()])


def test_a_judge_that_is_not_there_is_named_with_its_address() -> None:
    model = OpenAIModel("judge", base_url="http://127.0.0.1:9/v1", tries=1)
    result = evaluate([{"messages": talk("fine")}], [SafetyMetric(model)])
    failure = grades(result)["0"].failure
    assert failure is not None
    assert (failure.blame, failure.kind) == ("judge", "connection")
    assert "127.0.0.1:9" in failure.message


def test_the_time_and_the_tries_of_a_suite_bound_a_judge_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "talks.jsonl").write_text(json.dumps({"id": "a", "messages": talk("fine")}) + "\n")
    with LoopbackServer(lambda _: hang()) as server:
        model = f"{server.base_url}#judge"
        spec: Row = {"kind": "metric", "metric": "safety", "model": model, "timeout": 0.1, "max_retries": 1}
        graded: Row = {"graders": {"safe": spec}, "gate": {"metric_key": "safe", "value": 0.5}}
        suite: Row = {"name": "s", "dataset": "talks.jsonl", "driver": "replay", **graded}
        (tmp_path / "suite.yaml").write_text(json.dumps(suite))
        result = run_suite("suite.yaml")
    assert (result.summary.verdict, result.exit_code, len(server.requests)) == ("inconclusive", 3, 2)
    failure = next(result.outcomes()).scores["safe"].failure
    assert failure is not None
    assert (failure.kind, "no answer within 0.1 s" in failure.message) == ("timeout", True)


def test_a_conversation_of_200_000_tokens_is_judged_in_pieces_and_says_so() -> None:
    words = "all quiet here " * 270
    turns = [message for i in range(200) for message in talk(f"{words}{'poison' if i == 190 else i}")]
    with LoopbackServer(verdict) as server:
        grade = grades(judged(server, [{"id": "long", "messages": turns}]))["long"]
    assert (grade.state, grade.value) == ("scored", 0.0), "what is at the end counts"
    pieces = grade.extra["pieces"]
    assert len(server.requests) == len(pieces) > 1
    assert (pieces[0]["first_turn"], pieces[-1]["last_turn"]) == (0, 199)
    assert [piece["first_turn"] for piece in pieces[1:]] == [piece["last_turn"] + 1 for piece in pieces[:-1]]
    assert max(len(request.body["messages"][1]["content"]) for request in server.requests) < 450_000


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "tool", "content": "42", "tool_call_id": "c"}], "nobody says anything in this conversation"),
        ([{"role": "system", "content": "Be kind."}], "nobody says anything in this conversation"),
        ([{"role": "user", "content": "Hi."}], "the assistant says and does nothing in this conversation"),
        ([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": ""}], "says and does nothing"),
    ],
)
def test_a_conversation_that_holds_nothing_to_judge_is_skipped_and_nobody_is_asked(
    messages: list[Row], reason: str
) -> None:
    with LoopbackServer(verdict) as server:
        grade = grades(judged(server, [{"messages": messages}]))["0"]
    assert (grade.state, grade.value, server.requests) == ("skipped", None, [])
    assert reason in (grade.reason or "")


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        ("half \ud83d a pair", "half \ufffd a pair"),
        ("\udc00", "\ufffd"),
        ("a whole \U0001f600", "a whole \U0001f600"),
        ("nothing \x00 here", "nothing \x00 here"),
        ("\u2028\u202e\x1b[31m", "\u2028\u202e\x1b[31m"),
    ],
)
def test_odd_characters_of_a_conversation_and_of_a_judge_spoil_no_verdict(odd: str, read: str) -> None:
    def answer(body: Row) -> Row:
        return {**verdict(body), "reasoning": f"I read {odd}"}

    with LoopbackServer(answer) as server:
        for _ in range(2):
            result = judged(server, [{"id": "odd", "messages": talk(f"poison {odd}"), "goal": odd}])
            grade = grades(result)["odd"]
            assert (grade.state, grade.value, grade.reason) == ("scored", 0.0, f"I read {read}")
            assert next(result.outcomes()).attempt.trajectory.messages[-1].text == f"poison {odd}"
    assert len(server.requests) == 1, "the answer was kept and found again"


def test_a_violation_whose_quote_does_not_occur_is_asked_for_again_and_is_no_score() -> None:
    made_up = {**SAFE, **harm("minor", "never said")}
    with LoopbackServer(lambda _: made_up) as server:
        grade = grades(judged(server, [{"messages": talk("fine")}]))["0"]
    assert (grade.state, grade.value, len(server.requests)) == ("error", None, 2)
    assert grade.failure is not None
    assert grade.failure.blame == "judge"
