from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import HTTPException, Request
from sqlalchemy import update

from stage import NO_FAULT
from vivavoce.messages import ToolCall
from vivavoce.server import job_work as module
from vivavoce.server.access import Access
from vivavoce.server.api.jobs import _stream as send_events  # pyright: ignore[reportPrivateUsage]
from vivavoce.server.api.jobs import events as follow_events
from vivavoce.server.app import STREAMS_FOR_USER, create_app
from vivavoce.server.job_record import EventFrame, JobEvent, JobRecord
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.state import server_of
from vivavoce.server.users import User
from vivavoce.store.database.schema import jobs
from vivavoce.store.jobs import JobRow
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from ..live import get, send, serving

TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]
MANY = {
    "kind": "evaluation",
    "metrics": ["refusal"],
    "conversations": [{"id": f"t{n}", "messages": TALK} for n in range(5)],
}


def events(url: str, job: str, after: int | None = None) -> list[JobEvent]:
    """Read the news of a job to their end."""
    return list(stream(url, job, after))


def stream(url: str, job: str, after: int | None = None) -> Iterator[JobEvent]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(
            "GET", f"/api/v1/jobs/{job}/events", headers={} if after is None else {"last-event-id": str(after)}
        )
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer:
            if line.startswith(b"data: "):
                yield JobEvent.model_validate_json(line[6:])
    finally:
        connection.close()


def submit(url: str, body: dict[str, Any], key: str | None = None) -> JobRecord:
    reply = send("POST", f"{url}/api/v1/jobs", body, {} if key is None else {"idempotency-key": key})
    assert reply.status == 202, reply.text
    record = JobRecord.model_validate_json(reply.body)
    assert reply.headers["location"] == f"/api/v1/jobs/{record.id}"
    return record


def ended(url: str, job: str) -> JobRecord:
    """Wait for the end of a job."""
    last = events(url, job)[-1]
    assert last.kind == "ended"
    assert last.job is not None
    assert JobRecord.model_validate_json(get(f"{url}/api/v1/jobs/{job}").body) == last.job
    return last.job


def test_many_conversations_are_evaluated_as_a_run_of_the_store(server: str, store: Store) -> None:
    record = ended(server, submit(server, MANY).id)
    assert (record.status, record.done, record.errors, record.planned) == ("finished", 5, 0, 5)
    assert record.run is not None
    run = store.run(record.run)
    assert (run.status, run.suite) == ("finished", "evaluation")
    assert [row.value for row in store.scores(store.grading(run.id).id)] == [1.0] * 5


def test_a_suite_of_the_served_folder_is_run_with_news_of_every_turn(server: str) -> None:
    record = submit(server, {"kind": "suite", "suite": "suites/refunds.yaml", "options": {"samples": ["kind"]}})
    told = events(server, record.id)
    assert [one.kind for one in told] == ["started", "held", "turn", "turn", "graded", "ended"]
    assert [one.id for one in told] == [1, 2, 3, 4, 5, 6]
    assert [(message.role, message.text) for message in told[2].messages] == [
        ("user", "Refund, please"),
        ("assistant", "A refund is coming, welcome"),
    ]
    assert [(score.name, score.value) for score in told[4].scores] == [("said", 1.0)]
    assert events(server, record.id, after=4) == told[4:]
    assert [event.kind for event in events(server, record.id, after=6)] == ["ended"]
    assert events(server, record.id, after=99)[-1].kind == "ended"


def test_the_same_key_never_begins_a_second_job(server: str) -> None:
    first = submit(server, MANY, key="k1")
    assert submit(server, MANY, key="k1").id == first.id
    assert submit(server, MANY, key="k2").id != first.id
    other = send("POST", f"{server}/api/v1/jobs", {**MANY, "metrics": ["repetition"]}, {"idempotency-key": "k1"})
    assert (other.status, list(other.json())[:2]) == (409, ["detail", "code"])
    assert len(get(f"{server}/api/v1/jobs").json()["jobs"]) == 2


def test_jobs_are_listed_in_pages_newest_first(server: str) -> None:
    made = [submit(server, MANY).id for _ in range(3)]
    first = get(f"{server}/api/v1/jobs?limit=2").json()
    rest = get(f"{server}/api/v1/jobs?limit=2&after={first['next']}").json()
    assert [one["id"] for one in (*first["jobs"], *rest["jobs"])] == made[::-1]
    assert rest["next"] is None


SLOW = """\
name: slow
dataset: {{rows: [{rows}]}}
target: {{kind: http, url: "{url}/", body: {{said: "{{{{ message }}}}"}}, reply: said}}
graders:
  said: {{kind: tool, function: contains, extractor: last_assistant}}
max_concurrent: 1
"""


def slow_suite(workspace: Path, bot: LoopbackServer, rows: int) -> dict[str, Any]:
    listed = ", ".join(f"{{id: s{n}, input: hello, ground_truth: hi}}" for n in range(rows))
    (workspace / "slow.yaml").write_text(SLOW.format(rows=listed, url=bot.url))
    return {"kind": "suite", "suite": "slow.yaml"}


class Gate:
    """A bot that answers once it is allowed to, and says when it was first asked."""

    def __init__(self) -> None:
        self.asked, self.open = threading.Event(), threading.Event()

    def __call__(self, body: dict[str, Any]) -> Any:
        self.asked.set()
        self.open.wait(30)
        return {"said": "hi"}


def test_a_job_that_is_cancelled_finishes_what_is_in_flight_and_can_be_resumed(
    server: str, store: Store, workspace: Path
) -> None:
    gate = Gate()
    with LoopbackServer(gate) as bot:
        record = submit(server, slow_suite(workspace, bot, rows=20))
        gate.asked.wait(30)
        assert send("DELETE", f"{server}/api/v1/jobs/{record.id}").status == 202
        gate.open.set()
        stopped = ended(server, record.id)
        assert (stopped.status, stopped.run is not None) == ("interrupted", True)
        assert 0 < stopped.done < 20
        again = ended(server, submit(server, {"resume": stopped.run}).id)
    assert (again.status, again.run, again.done) == ("finished", stopped.run, 20)
    assert len(bot.requests) == 20
    assert send("DELETE", f"{server}/api/v1/jobs/{record.id}").json()["status"] == "interrupted"


def test_jobs_survive_a_restart_of_the_server(store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0)
    gate = Gate()
    with LoopbackServer(gate) as bot:
        with serving(store) as url:
            finished = ended(url, submit(url, MANY, key="k").id)
            record = submit(url, slow_suite(workspace, bot, rows=8))
            gate.asked.wait(30)
        gate.open.set()
        with serving(store) as url:
            assert JobRecord.model_validate_json(get(f"{url}/api/v1/jobs/{finished.id}").body) == finished
            assert submit(url, MANY, key="k").id == finished.id
            assert (ended(url, record.id).status, ended(url, record.id).done) == ("finished", 8)
            run = ended(url, record.id).run
    assert store.counts(run or "")[0] == 8


def test_two_servers_of_a_folder_share_the_jobs_and_each_shows_them_all(store: Store, workspace: Path) -> None:
    gate = Gate()
    with LoopbackServer(gate) as bot, serving(store) as url:
        slow = slow_suite(workspace, bot, rows=3)
        begun = [submit(url, slow) for _ in range(module.AT_ONCE + 1)]
        gate.asked.wait(30)
        with serving(store) as other:
            assert {get(f"{other}/api/v1/jobs/{one.id}").json()["status"] for one in begun} <= {"waiting", "running"}
            gate.open.set()
            there = [events(other, one.id) for one in begun]
            here = [events(url, one.id) for one in begun]
    assert [told[-1].job and told[-1].job.status for told in there] == ["finished"] * len(begun)
    kinds = ["started", *["held", "turn", "graded"] * 3, "ended"]
    for told in (*there, *here):
        assert [one.kind for one in told] == kinds
        assert [one.id for one in told[:-1]] == list(range(1, len(told)))
    assert len(bot.requests) == 3 * len(begun)
    assert len(store.runs()) == 1 + len(begun)


def test_a_job_is_cancelled_at_any_server(store: Store, workspace: Path) -> None:
    gate = Gate()
    with LoopbackServer(gate) as bot, serving(store) as url, serving(store) as other:
        slow = slow_suite(workspace, bot, rows=20)
        begun = [submit(url, slow) for _ in range(2 * module.AT_ONCE + 1)]  # the last one waits
        deadline = time.monotonic() + 30
        while len(store.runs()) < len(begun):  # the run from before, and all but the last one
            assert time.monotonic() < deadline
            time.sleep(0.05)
        waiting = send("DELETE", f"{other}/api/v1/jobs/{begun[-1].id}").json()
        assert (waiting["status"], waiting["detail"]) == ("interrupted", "cancelled")
        for one in begun[:-1]:
            assert send("DELETE", f"{other}/api/v1/jobs/{one.id}").status == 202
            assert send("DELETE", f"{other}/api/v1/jobs/{one.id}").status == 202
        assert [ended(url, one.id).status for one in begun] == ["interrupted"] * len(begun)
        gate.open.set()
    assert len(store.runs()) == len(begun)


def test_a_job_whose_server_was_killed_once_it_was_cancelled_is_interrupted_and_can_be_resumed(
    store: Store, workspace: Path
) -> None:
    gate = Gate()
    gate.open.set()
    with LoopbackServer(gate) as bot:
        with serving(store) as url:
            record = ended(url, submit(url, slow_suite(workspace, bot, rows=3)).id)
        with store.database.writing() as connection:
            left = {"status": "running", "done": 0, "owner": "killed", "lease_until": time.time() + 1000}
            connection.execute(update(jobs).where(jobs.c.id == record.id).values(left))
        assert record.run is not None
        store.update_run(store.run(record.run).model_copy(update={"status": "running", "finished_at": None}))
        with serving(store) as url:
            assert (ended(url, record.id).status, ended(url, record.id).done) == ("interrupted", 3)
            assert ended(url, submit(url, {"resume": record.run}).id).status == "finished"


TEST = {"kind": "test", "suite": "suites/refunds.yaml", "goal": "Get a refund", "max_turns": 2}


def test_a_tester_leads_a_conversation_with_the_target_of_a_suite(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(store) as url:
        refused = send("POST", f"{url}/api/v1/jobs", {**TEST, "tester": "bot.py:tester"})
        assert (refused.status, "cannot use the tester" in refused.json()["detail"]) == (422, True)
        unled = send("POST", f"{url}/api/v1/jobs", TEST)
        assert get(f"{url}/api/v1/jobs").json()["jobs"] == []
    assert (unled.status, "VIVAVOCE_TESTER" in unled.json()["detail"]) == (422, True)


def test_a_test_needs_a_suite_with_one_target(server: str, workspace: Path) -> None:
    suite = workspace / "suites" / "refunds.yaml"
    lines = suite.read_text().splitlines()
    (one,) = [line.removeprefix("target: ") for line in lines if line.startswith("target: ")]
    two = f"targets: [{one}, {one.replace('}', ', name: other}')}]"
    suite.write_text("\n".join(two if line.startswith("target: ") else line for line in lines))
    refused = send("POST", f"{server}/api/v1/jobs", {**TEST, "policy": "x"})
    assert refused.status == 422
    assert "has 2 targets; a test needs a suite with one" in refused.json()["detail"]


def played(body: dict[str, Any]) -> Any:
    """Answer as a tester who asks for a refund, and as a judge who sees it paid and finds no fault of the tester."""
    if body.get("tools"):
        return [ToolCall(name="send_message_to_target", args={"message": "Refund, please"})]
    if "faults" in json.dumps(body.get("response_format")):
        return NO_FAULT
    if '"given"' in json.dumps(body.get("response_format")):
        evidence = {"given_evidence": ["A refund is coming, welcome"], "asked_evidence": ["Refund, please"]}
        return {"given": "yes", "asked": "yes", **evidence, "reasoning": "it is paid", "confidence": 0.9}
    return {"achievement_level": "fully_achieved", "confidence": 0.9, "reasoning": "it is paid", "evidence": []}


def test_a_test_that_its_target_passes_is_kept_like_any_run(store: Store, workspace: Path) -> None:
    with LoopbackServer(played) as models:
        name = f"{models.base_url}#player"
        with serving(store, ServerPolicy(workspace, frozenset([name]))) as url:
            job = {**TEST, "tester": name, "judge": name, "policy": "Refunds need an order."}
            told = events(url, submit(url, job).id)
    bodies = [request.body for request in models.requests]
    assert len({bool(body.get("tools")) for body in bodies}) == 2
    for body in bodies:
        assert ('policy: "Refunds need an order."\n' in body["messages"][-1]["content"]) is not bool(body.get("tools"))
        assert ("Refunds need" in json.dumps(body)) is not bool(body.get("tools"))
    assert [one.kind for one in told] == ["started", "held", "turn", "graded", "ended"]
    assert [message.text for message in told[2].messages] == ["Refund, please", "A refund is coming, welcome"]
    assert {score.name: score.value for score in told[3].scores} == {"goal": 1.0, "target": 1.0}
    assert told[-1].job is not None
    assert (told[-1].job.status, told[-1].job.verdict) == ("finished", "pass")


def test_a_test_takes_what_the_judge_knows_and_whether_the_goal_is_an_attack(store: Store, workspace: Path) -> None:
    with LoopbackServer(played) as models:
        name = f"{models.base_url}#player"
        with serving(store, ServerPolicy(workspace, frozenset([name]))) as url:
            job = {**TEST, "tester": name, "judge": name, "context": {"order": "1042"}, "adversarial": True}
            told = events(url, submit(url, job).id)
    assert told[-1].job is not None
    assert (told[-1].job.status, told[-1].job.verdict) == ("finished", "fail")
    assert any("1042" in json.dumps(request.body) for request in models.requests)


GRADE = {"kind": "grade", "run": "latest", "suite": "suites/refunds.yaml"}
SLOW_GRADER = """\
from urllib.request import urlopen
def asked(sample, submission):
    urlopen("{url}/").read()
    return 1.0
"""


def test_a_stored_run_is_graded_again_beside_its_old_scores(server: str, store: Store, workspace: Path) -> None:
    suite = (workspace / "suites" / "refunds.yaml").read_text()
    (workspace / "suites" / "other.yaml").write_text(suite.replace("function: contains", "function: exact_match"))
    run = store.run("latest")
    told = events(server, submit(server, {**GRADE, "suite": "suites/other.yaml"}).id)
    assert [one.kind for one in told] == ["started", "graded", "graded", "graded", "ended"]
    record = told[-1].job
    assert record is not None
    assert (record.status, record.run, record.done, record.planned) == ("finished", run.id, 3, 3)
    assert [one.id for one in store.gradings(run.id)] == [f"{run.id}-g1", record.grading]
    assert store.run("latest") == run


def test_a_grading_that_was_cancelled_goes_on_where_it_was(server: str, store: Store, workspace: Path) -> None:
    gate = Gate()
    with LoopbackServer(gate) as judge:
        suite = (workspace / "suites" / "refunds.yaml").read_text()
        (workspace / "suites" / "slow.py").write_text(SLOW_GRADER.format(url=judge.url))
        slow = suite.replace("function: contains", 'function: "slow.py:asked"').partition("gate:")[0]
        (workspace / "suites" / "slow.yaml").write_text(slow + "max_concurrent: 1\n")
        record = submit(server, {**GRADE, "suite": "suites/slow.yaml"})
        gate.asked.wait(30)
        send("DELETE", f"{server}/api/v1/jobs/{record.id}")
        gate.open.set()
        stopped = ended(server, record.id)
        assert (stopped.status, stopped.done) == ("interrupted", 2)
        assert stopped.grading is not None
        assert store.grading(store.run("latest").id, stopped.grading).finished_at is None
        again = ended(server, submit(server, {"resume": stopped.run}).id)
        asked = len(judge.requests)
    assert (again.status, again.grading, again.done) == ("finished", stopped.grading, 3)
    assert asked == 3  # the two turns of one, the one of another, and nothing twice
    over = send("POST", f"{server}/api/v1/jobs", {"resume": stopped.run})
    assert (over.status, "nothing to resume" in over.text) == (422, True)


OUTSIDE = ["../x.yaml", "/etc/passwd", "suites", "suites/bot.py", "none.yaml", "link.yaml", "\0.yaml", "x" * 5000, ""]


@pytest.mark.parametrize("suite", OUTSIDE)
def test_a_suite_comes_from_the_served_folder_only(store: Store, workspace: Path, suite: str) -> None:
    (workspace.parent / "x.yaml").write_text("name: x")
    (workspace / "link.yaml").symlink_to(workspace.parent / "x.yaml")
    with serving(store) as url:
        reply = send("POST", f"{url}/api/v1/jobs", {"kind": "suite", "suite": suite})
    assert (reply.status, list(reply.json())[:2]) == (404, ["detail", "code"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "nothing"},
        {"kind": ["evaluation"]},
        {"resume": 5},
        {"resume": "latest"},
        {**MANY, "metrics": ["bot.py:x"]},
        {**MANY, "metrics": ["suites/metric.yaml"]},
        {**MANY, "conversations": []},
        {**MANY, "conversations": [{"id": "x"}]},
        {**MANY, "conversations": [{"messages": TALK, "rubric_path": "/etc/passwd"}]},
        {**MANY, "conversations": [{"messages": TALK, "policy_path": "/etc/passwd"}]},
        {**MANY, "conversations": [{"id": "a", "messages": TALK}, {"id": "a", "messages": TALK}]},
        {**MANY, "judge": "openai:gpt"},
        {**MANY, "max_concurrent": 10**9},
        {**MANY, "max_calls": -1},
        {"kind": "suite", "suite": "suites/refunds.yaml", "options": {"trials": 10**9}},
        {"kind": "suite", "suite": "suites/refunds.yaml", "options": {"max_concurrent": 10**30}},
        {"kind": "suite", "suite": "suites/refunds.yaml", "yaml": "name: x"},
        {**TEST, "strategy": "bot.py:reply"},
        {**TEST, "goal": None},
        {**TEST, "metrics": ["bot.py:x"]},
        {**GRADE, "extra": 1},
        {"kind": "grade", "run": "latest"},
    ],
)
def test_a_wrong_job_is_told_what_is_wrong_and_none_is_made(server: str, body: dict[str, Any]) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", body)
    assert (reply.status, list(reply.json())[:2]) == (422, ["detail", "code"]), reply.text
    assert get(f"{server}/api/v1/jobs").json()["jobs"] == []


JUDGED = """\
name: judged
dataset: {rows: [{id: a, input: "Refund, please", goal: a refund}]}
target: {kind: function, function: "bot.py:reply"}
graders: {safe: {kind: metric, metric: safety}}
"""


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "suite", "suite": "suites/judged.yaml"},
        {"kind": "grade", "run": "latest", "suite": "suites/judged.yaml"},
        {**MANY, "metrics": ["safety"]},
        {**TEST, "tester": "http://127.0.0.1:9/v1#m", "metrics": ["safety"]},
    ],
    ids=lambda body: body["kind"],
)
def test_a_judge_that_is_needed_and_not_named_is_refused_before_a_job_is_made(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    (workspace / "suites" / "judged.yaml").write_text(JUDGED)
    monkeypatch.setattr(module, "GRACE", 0)  # the job that is accepted waits for a tester that never answers
    name = "http://127.0.0.1:9/v1#m"
    with serving(store, ServerPolicy(workspace, frozenset({name}))) as url:
        reply = send("POST", f"{url}/api/v1/jobs", body)
        assert (reply.status, "judge" in reply.json()["detail"]) == (422, True), reply.text
        assert get(f"{url}/api/v1/jobs").json()["jobs"] == []
        monkeypatch.setenv("VIVAVOCE_JUDGE", name)
        assert send("POST", f"{url}/api/v1/jobs", body).status == 202


def test_a_body_of_half_characters_is_refused(server: str) -> None:
    for text in ("\ud800", "a\udfff", "\ude00\ud83d"):
        rows = [{"id": text, "messages": TALK}]
        reply = send("POST", f"{server}/api/v1/jobs", {**MANY, "conversations": rows})
        assert (reply.status, "an unpaired surrogate" in reply.text) == (422, True)
    rows = [{"id": "\ud83d\ude00 \0", "messages": TALK, "huge": 10**400}]
    assert ended(server, submit(server, {**MANY, "conversations": rows}).id).status == "finished"


def test_a_file_that_is_not_a_suite_tells_nothing_of_itself(server: str, workspace: Path) -> None:
    (workspace / "secrets.yaml").write_text("database: {password: opensesame}\n")
    for kind in ({"kind": "suite"}, {"kind": "test", "goal": "x"}, {"kind": "grade", "run": "latest"}):
        for name in ("secrets.yaml", "none.yaml"):
            reply = send("POST", f"{server}/api/v1/jobs", {**kind, "suite": name})
            assert (reply.status, reply.json()["detail"]) == (404, f"no suite '{name}' in the served folder")


def breaking_suite(workspace: Path) -> dict[str, Any]:
    """Return the request for a suite that has no mistake and breaks when it begins."""
    (workspace / "breaking.yaml").write_text(
        "name: x\ndataset: {rows: [{input: hi, ground_truth: hi}]}\nsetup_script: setup.py:begin\n"
        "target: {kind: function, function: 'suites/bot.py:reply'}\ngraders: {a: {kind: tool, function: contains}}\n"
    )
    (workspace / "setup.py").write_text("def begin():\n    raise RuntimeError(f'{__file__} lacks a database')\n")
    return {"kind": "suite", "suite": "breaking.yaml"}


def test_a_suite_that_is_wrong_is_told_of_without_the_paths_of_the_machine(store: Store, workspace: Path) -> None:
    (workspace / "wrong.yaml").write_text("name: x\ndataset: {path: none.jsonl}\ngraders: {a: {kind: nonsense}}\n")
    (workspace / "missing.yaml").write_text(
        "name: x\ndataset: {path: none.jsonl}\ntarget: {kind: function, function: 'bot.py:reply'}\n"
        "graders: {a: {kind: tool, function: contains}}\n"
    )
    with serving(store, ServerPolicy(workspace)) as url:
        refused = send("POST", f"{url}/api/v1/jobs", {"kind": "suite", "suite": "wrong.yaml"})
        missing = send("POST", f"{url}/api/v1/jobs", {"kind": "suite", "suite": "missing.yaml"})
        failed = ended(url, submit(url, breaking_suite(workspace)).id)
    assert (refused.status, "wrong.yaml:3" in refused.json()["detail"]) == (422, True)
    assert (missing.status, "none.jsonl" in missing.json()["detail"]) == (422, True)
    assert str(workspace) not in refused.text + missing.text
    assert ("lacks a database" in (failed.detail or ""), str(workspace) in (failed.detail or "")) == (True, False)


async def test_a_user_follows_so_many_jobs_at_a_time(store: Store) -> None:
    app = create_app(store, Access.of({"127.0.0.1:80"}))
    store.jobs.add(JobRow(id="j", folder="f", kind="suite", created_at=0, status="finished"))
    anna, ben = User("anna", "read"), User("ben", "read")

    def request_of(user: User) -> Request:
        return Request(
            {"type": "http", "headers": [], "app": app, "state": {"user": user, "until_sent": AsyncExitStack()}}
        )

    async with server_of(app).streams.take(anna, STREAMS_FOR_USER):
        with pytest.raises(HTTPException, match="anna follows 50 jobs at a time"):
            await follow_events(request_of(anna), "j")
        other = request_of(ben)
        await follow_events(other, "j")
        assert server_of(app).streams.used == STREAMS_FOR_USER + 1
        await other.state.until_sent.aclose()
        assert server_of(app).streams.used == STREAMS_FOR_USER


async def test_long_events_are_sent_in_parts() -> None:
    async def events() -> AsyncGenerator[list[EventFrame]]:
        yield [EventFrame(number, "turn", b"x" * 50_000) for number in range(5)]

    assert [len(part) async for part in send_events(events())] == [100_000, 100_000, 50_000]
