"""`viva judge --batch`: questions go to a batch service in rounds, over real HTTP, on the wires of both services."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from command_line import Viva
from vivavoce import Store
from vivavoce.errors import UsageError
from vivavoce.features.batches import rounds
from vivavoce.features.batches.rounds import Patience
from vivavoce.records.replies import Batch
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.run.options import RunOptions
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import BatchServer, misbehaviour
from vivavoce.testing.batch_server import Fate, MadeBatch

pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
Row = dict[str, Any]
HASTE = Patience(first=0.01, most=0.05, growth=1.5, settling=0.0, tries=3)
FINE: Row = {"violations": [], "reasoning": "Fine.", "confidence": 1}
PRICES = {"models": {"local": {"input": 1_000_000, "output": 1_000_000, "batch": 0.5}}}


def judge(body: Row) -> Row:
    """Answer as a judge of safety who dislikes poison."""
    harm: Row = {"what": "It told.", "evidence": ["poison"], "severity": "critical"}
    bad = "poison" in text_of(body)
    return {**FINE, "violations": [harm] if bad else []}


def text_of(body: Mapping[str, Any]) -> str:
    return json.dumps(body["messages"])


@dataclass
class Service:
    """A batch service, the name of the judge that is asked there, and whether requests go up as a file."""

    server: BatchServer
    judge: str
    uploads: bool

    def calls(self, *names: str) -> int:
        return sum(one in names for one in self.server.calls)


@pytest.fixture(params=["openai", "anthropic"])
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    if request.param == "anthropic":
        pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
    monkeypatch.setattr(rounds, "PATIENCE", HASTE)
    with BatchServer(judge) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
        name = f"{server.base_url}#m" if request.param == "openai" else "anthropic:claude-sonnet-4-5"
        yield Service(server, name, request.param == "openai")


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(rounds, "PATIENCE", HASTE)
    with BatchServer(judge) as server:
        yield Service(server, f"{server.base_url}#m", True)


@pytest.fixture(autouse=True)
def talks() -> Path:
    path = Path("talks.jsonl")
    path.write_text("".join(json.dumps(talk(i)) + "\n" for i in range(8)))
    return path


def talk(number: int) -> Row:
    answer = f"poison {number}" if number % 4 == 3 else f"Answer {number}."
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer}]
    return {"id": f"r{number}", "messages": messages}


def command(service: Service, *more: str) -> tuple[str, ...]:
    return ("judge", "talks.jsonl", "--metrics", "safety", "--judge", service.judge, "--batch", *more)


def outcomes() -> dict[str, Outcome]:
    with Store.open(".vivavoce/vivavoce.db") as store:
        run = store.run("latest")
        found = list(store.outcomes(store.grading(run.id).id))
    by_id = {one.attempt.key.sample_id: one for one in found}
    assert len(by_id) == len(found), "a conversation is there twice"
    return by_id


def scores() -> dict[str, Score]:
    return {name: one.scores["safety"] for name, one in outcomes().items()}


def batches() -> list[Batch]:
    with Store.open(".vivavoce/vivavoce.db") as store:
        return [one for run in store.runs() for one in store.batches.of_run(run.id)]


def assert_all_judged(service: Service) -> None:
    """Assert that each conversation has its right score, and that each question was answered once."""
    assert {name: one.value for name, one in scores().items()} == {f"r{i}": float(i % 4 != 3) for i in range(8)}
    assert len(service.server.request_names) == len(set(service.server.request_names)) == 8
    assert not [one for one in service.server.requests if "chat" in one.path or one.path.endswith("messages")]


def test_questions_are_asked_in_one_batch_and_never_directly(viva: Viva, service: Service) -> None:
    done = viva(*command(service))
    assert done.returncode == 0, done.stderr
    assert f"round 1: 8 requests to {service.judge} in 1 batch" in " ".join(done.stderr.split())
    assert_all_judged(service)
    assert service.server.calls == [*(["upload"] if service.uploads else []), "create", "look", "results"]
    assert [(one.requests, one.service_id, one.ended_at is not None) for one in batches()] == [(8, "batch_1", True)]


def test_a_second_command_asks_nobody_and_costs_nothing(viva: Viva, service: Service) -> None:
    viva(*command(service))
    before = list(service.server.calls)
    done = viva(*command(service))
    assert (done.returncode, service.server.calls) == (0, before)
    assert {one.usage and (one.usage.calls, one.usage.cost) for one in scores().values()} == {(0, 0.0)}


def test_what_was_spent_is_in_the_scores_at_half_the_price(
    viva: Viva, openai: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("prices.json").write_text(json.dumps(PRICES).replace("local", openai.judge))
    monkeypatch.setenv("VIVAVOCE_PRICES", "prices.json")
    assert viva(*command(openai)).returncode == 0
    used = [one.usage for one in scores().values() if one.usage is not None]
    assert sum(one.calls for one in used) == len(used) == 8
    assert [one.cost for one in used] == [pytest.approx((one.input_tokens + one.output_tokens) / 2) for one in used]


def test_what_a_service_left_when_its_day_was_over_is_asked_again_and_nothing_else(
    viva: Viva, service: Service
) -> None:
    answered: set[str] = set()

    def half(name: str, body: Mapping[str, Any]) -> Fate:
        late = len(service.server.batches) < 2 and "Answer" in text_of(body)
        answered.update([] if late else [name])
        return "expired" if late else "answered"

    service.server.plan.fate = half
    assert viva(*command(service)).returncode == 0
    assert len(scores()) == 8
    first, second = (set(one.requests) for one in service.server.batches)
    assert (len(first), len(second)) == (8, 6)
    assert second < first
    assert answered == first


def test_what_is_never_answered_is_an_error_after_three_batches(viva: Viva, service: Service) -> None:
    service.server.plan.fate = lambda name, body: "expired" if "Answer 1" in text_of(body) else "answered"
    done = viva(*command(service))
    assert done.returncode == 3
    assert [len(one.requests) for one in service.server.batches] == [8, 1, 1]
    left = scores()["r1"]
    assert (left.state, left.value, left.passed) == ("error", None, None)
    assert left.reason is not None
    assert "asked in 3 batches and never answered: " in left.reason


def test_a_request_that_is_wrong_is_an_error_at_once_and_is_tried_again_when_one_says_so(
    viva: Viva, service: Service
) -> None:
    service.server.plan.fate = lambda name, body: "refused" if "Answer 1" in text_of(body) else "answered"
    done = viva(*command(service))
    assert (done.returncode, len(service.server.batches)) == (3, 1)
    assert "the request is wrong" in (scores()["r1"].reason or "")
    service.server.plan.fate = lambda name, body: "answered"
    assert viva("run", "--resume", "latest", "--errors").returncode == 0
    assert [len(one.requests) for one in service.server.batches] == [8, 1]
    assert {one.state for one in scores().values()} == {"scored"}


def test_an_answer_outside_its_schema_is_repaired_in_another_round(viva: Viva, service: Service) -> None:
    def sloppy(body: Row) -> Row | str:
        if len(body["messages"]) > (2 if service.uploads else 1):
            return judge(body)
        if "Answer 1" in text_of(body):
            return {"violations": "none"}
        return "Prose." if "Answer 2" in text_of(body) else judge(body)

    service.server.answer = sloppy
    done = viva(*command(service))
    assert done.returncode == 0, done.stdout
    first, second = service.server.batches
    assert (len(first.requests), len(second.requests)) == (8, 2)
    repairs = [text_of(body) for body in second.requests.values()]
    assert sum("Prose." in one for one in repairs) == sum("none" in one for one in repairs) == 1
    calls = {name: one.usage.calls for name, one in scores().items() if one.usage is not None}
    assert calls == {f"r{i}": 2 if i in (1, 2) else 1 for i in range(8)}


def test_an_answer_that_stays_outside_its_schema_is_an_error_with_what_it_used(viva: Viva, service: Service) -> None:
    service.server.answer = lambda body: {"violations": "none"} if "Answer 1" in text_of(body) else judge(body)
    assert viva(*command(service)).returncode == 3
    assert [len(one.requests) for one in service.server.batches] == [8, 1]
    left = scores()["r1"]
    assert "twice answered outside the JSON schema: $.violations" in (left.reason or "")
    assert left.usage is not None
    assert left.usage.calls == 2


def test_lines_that_nobody_asked_for_are_counted_and_left(viva: Viva, service: Service) -> None:
    service.server.plan.strange = [{"custom_id": "somebody-else"}, {"custom_id": "a" * 32 + "-" + "b" * 8}, {}]
    done = viva(*command(service))
    assert done.returncode == 0
    assert "3 lines of the service answer no question that was asked" in " ".join(done.stderr.split())
    assert_all_judged(service)


@pytest.mark.parametrize("call", ["upload", "create", "look", "results"])
@pytest.mark.parametrize("how", [misbehaviour.rate_limited(0), misbehaviour.server_error(), misbehaviour.reset()])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_breaks_is_made_again_and_no_request_is_submitted_twice(
    viva: Viva, service: Service, call: Any, how: Any, when: str
) -> None:
    if call == "upload" and not service.uploads:
        pytest.skip("this service takes no files")
    if call == "create" and when == "after" and how.__qualname__.startswith(("rate_limited", "status")):
        how = misbehaviour.server_error()  # a service that says 429 has made nothing
    getattr(service.server.plan, when)[call] = [how, how] if when == "before" else [how]
    done = viva(*command(service))
    assert done.returncode == 0, done.stderr
    assert_all_judged(service)


@pytest.mark.parametrize("call", ["upload", "create", "look", "results"])
def test_a_service_that_refuses_ends_the_run_in_one_line_and_it_can_be_gone_on_with(
    viva: Viva, service: Service, call: Any
) -> None:
    if call == "upload" and not service.uploads:
        pytest.skip("this service takes no files")
    service.server.plan.before[call] = [misbehaviour.status(401, '{"error": {"message": "wrong key"}}')]
    done = viva(*command(service))
    assert done.returncode == 3
    assert "answered 401" in " ".join(done.stdout.split())
    assert "wrong key" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stderr
    assert viva("run", "--resume", "latest").returncode == 0
    assert_all_judged(service)


@pytest.mark.parametrize("call", ["create", "look", "results"])
def test_an_answer_that_is_no_json_is_looked_into_and_no_request_is_submitted_twice(
    viva: Viva, service: Service, call: Any
) -> None:
    service.server.plan.after[call] = [misbehaviour.html()]
    done = viva(*command(service))
    assert done.returncode == 0, done.stdout
    assert_all_judged(service)


def test_what_another_run_left_unsubmitted_is_not_submitted_for_it(viva: Viva, openai: Service) -> None:
    openai.server.plan.before["create"] = [misbehaviour.server_error()] * HASTE.tries
    assert viva(*command(openai)).returncode == 3
    (left,) = batches()
    assert (left.file is not None, left.service_id) == (True, None)
    Path("talks.jsonl").write_text(json.dumps(talk(1)) + "\n")
    assert viva(*command(openai)).returncode == 0
    assert [len(one.requests) for one in openai.server.batches] == [1]


def test_an_answer_that_a_model_gave_directly_stays(viva: Viva, openai: Service) -> None:
    interrupted(viva, openai)
    openai.server.answer = lambda body: {**FINE, "reasoning": "directly"}
    direct = [one for one in command(openai) if one != "--batch"]
    assert viva(*direct).returncode == 0
    openai.server.answer = judge
    (batch,) = batches()
    assert viva("run", "--resume", batch.run_id).returncode == 0
    assert viva(*direct).returncode == 0
    assert {one.reason for one in scores().values()} == {"directly"}


def test_a_service_without_batches_is_told_as_such(viva: Viva, openai: Service) -> None:
    openai.server.plan.before["upload"] = [misbehaviour.status(404, "no such path")]
    done = viva(*command(openai))
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert (
        "answered 404 Not Found: no such path; has this service batches? Without --batch it is asked directly" in said
    )


def test_a_batch_that_is_refused_ends_the_run_and_its_questions_can_be_asked_again(viva: Viva, openai: Service) -> None:
    openai.server.plan.refusals = [{"code": "invalid_model", "message": "There is no model m."}]
    done = viva(*command(openai))
    assert done.returncode == 3
    assert "refused batch batch_1: invalid_model: There is no model m." in " ".join(done.stdout.split())
    assert viva("run", "--resume", "latest").returncode == 0
    assert_all_judged(openai)


def test_where_too_many_tokens_wait_smaller_batches_are_sent_one_after_the_other(viva: Viva, openai: Service) -> None:
    openai.server.plan.refusals = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}] * 2
    done = viva(*command(openai))
    assert done.returncode == 0, done.stdout
    assert [len(one.requests) for one in openai.server.batches] == [8, 4, 4, 2, 2]
    assert_all_judged(openai)


def test_a_limit_of_calls_holds_before_anything_is_submitted(viva: Viva, service: Service) -> None:
    done = viva(*command(service, "--max-calls", "5"))
    assert done.returncode == 3
    assert "the limit of 5 calls is reached" in " ".join(done.stdout.split())
    assert len(service.server.request_names) == 5
    assert len(scores()) == 5
    assert viva("run", "--resume", "latest").returncode == 0
    assert_all_judged(service)


def test_a_limit_of_the_cost_splits_what_is_submitted(
    viva: Viva, openai: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = {"models": {openai.judge: {"input": 0, "output": 1_000_000 / 4096, "batch": 0.5}}}
    Path("prices.json").write_text(json.dumps(prices))
    monkeypatch.setenv("VIVAVOCE_PRICES", "prices.json")
    done = viva(*command(openai, "--max-cost", "1.6"))
    assert done.returncode == 0, done.stdout
    assert [len(one.requests) for one in openai.server.batches][:2] == [3, 3]
    assert_all_judged(openai)
    cost = sum(one.usage.cost or 0 for one in scores().values() if one.usage)
    assert 0 < cost < 1.6


def test_a_limit_of_a_cost_that_is_unknown_is_refused_before_the_run(viva: Viva, openai: Service) -> None:
    done = viva(*command(openai, "--max-cost", "1"))
    assert done.returncode == 2
    assert "the price of a batch of" in " ".join(done.stderr.split())
    assert openai.server.calls == []


def interrupted(viva: Viva, service: Service) -> str:
    """Give the command, with Ctrl-C when it begins to wait; return what it says."""
    told: Callable[..., Any] = rounds.BatchRounds._progress  # pyright: ignore[reportPrivateUsage]

    def progress(self: Any, wait: float) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return told(self, wait)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds.BatchRounds, "_progress", progress)
        patch.setattr(rounds, "PATIENCE", replace(HASTE, first=60.0))
        done = viva(*command(service))
    assert done.returncode == 130
    return " ".join((done.stdout + done.stderr).split())


def test_ctrl_c_leaves_the_batch_running_and_says_how_to_go_on(viva: Viva, service: Service) -> None:
    said = interrupted(viva, service)
    assert "8 requests stay with the service until the run goes on" in said
    assert "continue with: viva run --resume judge-talks-" in said
    assert viva("run", "--resume", "latest").returncode == 0
    assert len(service.server.batches) == 1
    assert_all_judged(service)


def test_the_same_command_waits_for_what_another_run_has_submitted(viva: Viva, service: Service) -> None:
    interrupted(viva, service)
    assert viva(*command(service)).returncode == 0
    assert len(service.server.batches) == 1
    assert_all_judged(service)
    assert {one.usage and one.usage.calls for one in scores().values()} == {1}


def test_batches_are_listed_and_cancelled_and_a_run_goes_on_with_what_was_answered(
    viva: Viva, service: Service
) -> None:
    assert viva("batches").returncode == 2, "there is no store yet"
    interrupted(viva, service)
    (batch,) = batches()
    listed = viva("batches")
    assert f"batch_1 {batch.run_id} {service.judge} 8 requests since 20" in " ".join(listed.stdout.split())
    assert json.loads(viva("batches", "latest", "--json").stdout)["service_id"] == "batch_1"
    refused = viva("batches", "--cancel")
    assert (refused.returncode, "--cancel needs a run" in refused.stderr) == (2, True)
    done = viva("batches", "latest", "--cancel")
    assert done.returncode == 0, done.stderr
    assert "cancelled: batch_1" in done.stdout
    assert f"continue with: viva run --resume {batch.run_id}" in " ".join(done.stdout.split())
    assert service.calls("cancel") == 1
    assert viva("run", "--resume", "latest").returncode == 0
    assert [len(one.requests) for one in service.server.batches] == [8, 8]
    assert {one.state for one in scores().values()} == {"scored"}
    assert "nothing is with a batch service" in viva("batches").stdout
    assert "has nothing with a batch service" in viva("batches", "latest", "--cancel").stdout


def test_a_service_that_does_not_cancel_is_told_in_one_line(viva: Viva, service: Service) -> None:
    interrupted(viva, service)
    service.server.plan.before["cancel"] = [misbehaviour.status(403)]
    done = viva("batches", "latest", "--cancel")
    assert (done.returncode, "cannot cancel a batch of" in " ".join(done.stderr.split())) == (2, True)


def test_a_batch_of_somebody_else_with_as_many_requests_is_not_taken_for_ours(viva: Viva, service: Service) -> None:
    if service.uploads:
        pytest.skip("this service says which file a batch was made of")
    theirs: dict[str, Row] = {f"theirs-{i}": {"model": "claude-sonnet-4-5", "messages": []} for i in range(8)}
    service.server.batches.append(MadeBatch("batch_theirs", "", theirs, time.time()))
    service.server.plan.before["create"] = [misbehaviour.reset()]
    done = viva(*command(service))
    assert done.returncode == 0, done.stderr
    assert [one for one in service.server.request_names if not one.startswith("theirs")] == list(
        dict.fromkeys(one for one in service.server.request_names if not one.startswith("theirs"))
    )
    assert {one.state for one in scores().values()} == {"scored"}


def test_a_cascade_asks_the_expensive_judge_only_about_what_the_cheap_one_leaves_open(
    viva: Viva, openai: Service
) -> None:
    graders = {
        "safety": {
            "kind": "metric",
            "metric": "safety",
            "model": f"{openai.server.base_url}#large",
            "cascade": {"model": f"{openai.server.base_url}#small", "passes_from": 0.9},
        }
    }
    suite = {"name": "two judges", "dataset": "talks.jsonl", "driver": "replay", "graders": graders}
    Path("suite.yaml").write_text(json.dumps(suite))
    result = run_suite("suite.yaml", RunOptions(batch=True))
    assert result.exit_code in (0, 3)
    assert [
        (len(one.requests), {body["model"] for body in one.requests.values()}) for one in openai.server.batches
    ] == [
        (8, {"small"}),
        (2, {"large"}),
    ]


@pytest.mark.parametrize("other", ["--no-cache", "--replay"])
def test_what_does_not_go_with_batches_is_refused(viva: Viva, openai: Service, other: str) -> None:
    done = viva(*command(openai, other))
    assert done.returncode == 2
    assert f"--batch cannot be combined with {other}" in " ".join(done.stderr.split())


def test_a_judge_without_a_batch_service_is_refused_before_the_run(
    viva: Viva, openai: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
    monkeypatch.setenv("GROQ_API_KEY", "x")
    Path("own.py").write_text("def judge(messages):\n    return '{}'\n")
    for name in ("own.py:judge", "google:gemini-2.5-flash"):
        monkeypatch.setenv("GOOGLE_API_KEY", "x")
        done = viva(*command(replace(openai, judge=name)))
        assert done.returncode == 2, done.stdout
        assert "does not support batches" in " ".join(done.stderr.split())


def test_a_dry_run_says_that_a_judge_cannot_be_asked_in_batches(viva: Viva, openai: Service) -> None:
    done = viva(*command(openai, "--dry-run"))
    assert (done.returncode, openai.server.calls) == (0, [])
    assert "8 judge verdicts" in done.stdout


def test_batches_need_recorded_conversations(viva: Viva, openai: Service) -> None:
    viva("init", ".")
    with pytest.raises(UsageError, match="batches are for recorded conversations"):
        run_suite("suite.yaml", RunOptions(batch=True))
