"""Every limit of docs/reference/limits.md, tried at its value and just beyond it, at each entry that reaches it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import pytest

from cli.conftest import Viva
from command_line import run_viva
from server.live import Reply, get, send, serving
from server.pages.test_sign_in import fields, submit
from vivavoce import work_time
from vivavoce.comparing.similarity import near_repeats
from vivavoce.conversations.format import Loss, Member, Place
from vivavoce.errors import GraderFault, SuiteFault
from vivavoce.features.clusters.cache import ClusterCache
from vivavoce.features.formats.otel import flat
from vivavoce.features.formats.steps import Step
from vivavoce.features.formats.traced import Line, Lines, assemble
from vivavoce.features.watch import intake
from vivavoce.features.watch.intake import Arrival, Delivery, Refused, read_document, unpack
from vivavoce.features.watch.settling import Rules, begin
from vivavoce.features.watch.spool import Spool
from vivavoce.metrics import judging
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.types import Reading
from vivavoce.models.json_schema import mismatch
from vivavoce.safe_template import SafeEnvironment, TemplateTooLarge
from vivavoce.server import connection, traffic
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.fair_share import FairShare
from vivavoce.server.job import Job, JobNews
from vivavoce.server.job_record import EventFrame, JobEvent, JobRecord
from vivavoce.server.job_requests import EvaluationJob
from vivavoce.server.jobs import Jobs, TooManyJobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import MAX_BYTES, Task, TooMuchWork, call, job_bytes
from vivavoce.server.state import server_of
from vivavoce.server.traffic import TrafficMiddleware
from vivavoce.server.users import User
from vivavoce.server.webhooks import Sender
from vivavoce.store.access import digest_of
from vivavoce.store.jobs import USER_MARK_CHARS, Claimant, JobRow, marked_request
from vivavoce.store.store import Store
from vivavoce.store.webhooks import tell
from vivavoce.suites.experiment import run_suite

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

PAGE: Any = import_module("limits_page")

Outcome = Literal["accepted", "refused", "error"]
VALUES: dict[str, int] = {limit.key: limit.value for limit in PAGE.limits()}
BEYOND: dict[str, Outcome] = {limit.key: "refused" if limit.beyond == "refused" else "error" for limit in PAGE.limits()}


@dataclass(frozen=True)
class Entries:
    """The ways in: a server, the command that the commit hook runs, and a run of a suite."""

    url: str
    viva: Viva
    folder: Path
    base: str

    def evaluate(self, metric: dict[str, Any], reply: str = "Hello", **more: Any) -> Outcome:
        """Measure one reply over the API."""
        messages = more.pop("messages", None) or [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": reply},
        ]
        answer = send("POST", f"{self.url}/api/v1/evaluations", {"messages": messages, "metrics": [metric], **more})
        if answer.status != 200:
            assert answer.status in (413, 422), answer.text
            return "refused"
        (result,) = answer.json()["results"].values()
        return "error" if result["state"] == "error" else "accepted"

    def validate(self, grader: dict[str, Any], **more: Any) -> Outcome:
        """Check a suite with this grader, as the hook does before a commit."""
        return self.check(json.dumps(self._suite(grader, **more)))

    def calls(self, wanted: int, made: int) -> Outcome:
        """Measure calls of one tool against the wanted calls."""
        function = {"name": "find", "arguments": "{}"}
        calls = [{"id": f"c{i}", "type": "function", "function": function} for i in range(made)]
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": calls}]
        reference = [{"name": "find", "args": {"n": i}} for i in range(wanted)]
        return self.evaluate({"metric": "tool_call_f1"}, messages=messages, reference_tool_calls=reference)

    def check(self, text: str) -> Outcome:
        """Check the text of a suite."""
        path = self.folder / "suites" / "limit.yaml"
        path.write_text(text)
        done = self.viva("validate", str(path))
        assert done.returncode in (0, 2), done.stderr
        return "refused" if done.returncode else "accepted"

    def run(self, grader: dict[str, Any], reply: str, truth: str = "x") -> Outcome:
        """Run a suite whose target gives this reply."""
        (self.folder / "suites" / "limit_bot.py").write_text(f"def reply(messages):\n    return {reply!r}\n")
        suite = self._suite(grader, target={"kind": "function", "function": "limit_bot.py:reply"})
        suite["dataset"] = {"rows": [{"id": "a", "input": "Hi", "ground_truth": truth}]}
        path = self.folder / "suites" / "limit.yaml"
        path.write_text(json.dumps(suite))
        (outcome,) = run_suite(path, store=str(self.folder / "limit.db")).outcomes()
        return "error" if outcome.scores["g"].state == "error" else "accepted"

    def _suite(self, grader: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "name": "limit",
            "dataset": {"rows": [{"id": "a", "input": "Hi", "ground_truth": "x"}]},
            "target": {"kind": "function", "function": "bot.py:reply"},
            "graders": {"g": grader},
            "gate": {"kind": "simple", "metric_key": "g", "op": "gte", "value": 0.5},
            **more,
        }

    def reply_is_json(self, reply: str) -> Outcome:
        """Check that a reply is read as JSON."""
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": reply}]
        metric = {"metric": "json_schema", "config": {"schema": {"type": "array"}}}
        answer = send("POST", f"{self.url}/api/v1/evaluations", {"messages": messages, "metrics": [metric]})
        return "accepted" if answer.json()["results"]["json_schema"]["passed"] else "refused"

    def filter(self, text: str) -> Outcome:
        """Filter the samples of a run over the API."""
        return self._get(f"/api/v1/runs/latest/samples?filter={quote(text)}")

    def page(self, path: str) -> Outcome:
        """Open a page."""
        return self._get(path)

    def _get(self, path: str) -> Outcome:
        answer = get(self.url + path)
        assert answer.status in (200, 422), answer.text
        return "refused" if answer.status == 422 else "accepted"

    def send(self, method: str, path: str, body: object) -> Outcome:
        """Change something over the API."""
        answer = send(method, self.url + path.replace("RUN", self.base), body)
        assert answer.status in (200, 201, 413, 422), answer.text
        return "refused" if answer.status in (413, 422) else "accepted"

    def job(self, body: dict[str, Any]) -> Outcome:
        """Start a job with one conversation, and wait for nothing."""
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        answer = send("POST", f"{self.url}/api/v1/jobs", {**body, "conversations": [{"id": "a", "messages": messages}]})
        assert answer.status in (202, 422), answer.text
        return "accepted" if answer.status == 202 else "refused"

    def form_of(self, size: int) -> Outcome:
        """Send a form of this many bytes: a field that is empty many times over."""
        known = {**fields(get(f"{self.url}/runs/{self.base}")), "title": "x", "notes": ""}
        filler = size - len(urlencode(known))
        answer = submit(f"{self.url}/runs/{self.base}/remarks", {**known, "notes": "x" * filler})
        return "refused" if answer.status == 413 else "accepted"  # what is read may still break another rule

    def form(self, path: str, values: dict[str, str]) -> Outcome:
        """Fill in a form of the page of a run."""
        answer = submit(
            self.url + path.replace("RUN", self.base), {**fields(get(f"{self.url}/runs/{self.base}")), **values}
        )
        assert answer.status in (303, 413, 422), answer.text
        return "accepted" if answer.status == 303 else "refused"


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entries]:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "suites").mkdir()
    (folder / "suites" / "bot.py").write_text("def reply(messages):\n    return 'Hello'\n")
    suite = folder / "suites" / "base.yaml"
    suite.write_text(
        json.dumps(
            {
                "name": "base",
                "dataset": {"rows": [{"id": "a", "input": "Hi", "ground_truth": "Hello"}]},
                "target": {"kind": "function", "function": "bot.py:reply"},
                "graders": {"g": {"kind": "tool", "function": "contains"}},
                "gate": {"kind": "simple", "metric_key": "g", "op": "gte", "value": 0.5},
            }
        )
    )
    where = str(folder / "store.db")
    base = run_suite(suite, store=where).run.id
    with Store.open(where) as store, serving(store) as url:
        yield Entries(url, run_viva, folder, base)


Try = Callable[[Entries, int], Outcome]


def prompt(text: str) -> dict[str, Any]:
    """Return a judged grader of a suite with this prompt."""
    return {"kind": "model_judge", "model": "http://127.0.0.1:9/v1#m", "prompt": text + "{{ submission }}"}


def template(write: Callable[[int], str], spare: int = 0) -> tuple[Try, ...]:
    """Return the entries of templates; `spare` is what the grader of a suite adds to the text."""

    def over_the_api(entries: Entries, size: int) -> Outcome:
        metric = {"metric": "safety", "config": {"prompt": write(size)}}
        body = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
        answer = send("POST", f"{entries.url}/api/v1/evaluations", {**body, "metrics": [metric]})
        return "refused" if "the template" in answer.text else "accepted"

    return over_the_api, lambda entries, size: entries.validate(prompt(write(size - spare)))


def rendering(source: str, **values: object) -> Outcome:
    """Render a template."""
    try:
        SafeEnvironment().from_string(source).render(**values)
    except TemplateTooLarge:
        return "error"
    return "accepted"


def schema(write: Callable[[int], dict[str, Any]]) -> tuple[Try, ...]:
    """Return the entries of schemas: a request, and a suite."""
    return (
        lambda entries, size: entries.evaluate({"metric": "json_schema", "config": {"schema": write(size)}}, "{}"),
        lambda entries, size: entries.validate(
            {"kind": "tool", "function": "json_schema", "config": {"schema": write(size)}}
        ),
    )


def phrases(metric: str, option: str, count: int) -> dict[str, Any]:
    """Return a metric with `count` phrases of its own."""
    return {"metric": metric, "config": {option: [f"w{i}" for i in range(count)]}}


def aliased_yaml(size: int) -> str:
    """Return a file whose values have `size` characters once its aliases are expanded."""
    part = size // 60
    rest = size - 50 * part - 1
    aliases = ", ".join(["*a"] * 49)
    return f"name: x\nfirst: &a {'a' * part}\nwhat: [{aliases}]\nrest: {'b' * rest}\n"


def checked(schema: dict[str, Any], value: object) -> Outcome:
    """Check a value against a schema."""
    try:
        mismatch(value, schema)
    except GraderFault:
        return "error"
    return "accepted"


def by_reply(metric: str, config: dict[str, Any], reply: Callable[[int], str], truth: str = "x") -> tuple[Try, ...]:
    """Return the entries of what a target answers: a request, and a run of a suite."""
    return (
        lambda entries, size: entries.evaluate({"metric": metric, "config": config}, reply(size), reference=truth),
        lambda entries, size: entries.run({"kind": "tool", "function": metric, "config": config}, reply(size), truth),
    )


def pattern(write: Callable[[int], str]) -> tuple[Try, ...]:
    """Return the entries of patterns: a grader and a schema in a request, a suite, and an assertion in a row."""
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]

    def over_the_api(entries: Entries, size: int) -> Outcome:
        metric = {"metric": "tool_call_accuracy", "config": {"failed_when": write(size)}}
        return entries.evaluate(metric, reference_tool_calls=calls)

    def in_a_schema(entries: Entries, size: int) -> Outcome:
        schema = {"type": "string", "pattern": write(size)}
        return entries.evaluate({"metric": "json_schema", "config": {"schema": schema}}, '"Hello"')

    def in_a_suite(entries: Entries, size: int) -> Outcome:
        config = {"failed_when": write(size)}
        return entries.validate({"kind": "tool", "function": "tool_call_accuracy", "config": config})

    def in_a_row(entries: Entries, size: int) -> Outcome:
        row = {"id": "a", "input": "Hi", "ground_truth": "x", "expect": [{"regex": write(size)}]}
        return entries.validate({"kind": "tool", "function": "contains"}, dataset={"rows": [row]})

    return over_the_api, in_a_schema, in_a_suite, in_a_row


def repeated(texts: int, words: int) -> Outcome:
    """Compare texts, each with all earlier ones."""
    count, rest = divmod(words, texts)
    try:
        near_repeats([["a"] * (count + (i < rest)) for i in range(texts)])
    except GraderFault:
        return "error"
    return "accepted"


def talk(messages: int) -> list[dict[str, str]]:
    """Return a conversation in which the assistant says as many messages as this, each of eight words."""
    turns = (
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"{i} b c d e f g h"}]
        for i in range(messages)
    )
    return [message for turn in turns for message in turn]


def endless(entries: Entries, seconds: int) -> Outcome:
    """Search as long as the limit: a text that takes longer is an error, one that does not is searched."""
    hostile = "a" * 60 + "!" if seconds > VALUES["safe_regex.SECONDS"] else "a"
    return entries.evaluate({"metric": "regex_match"}, hostile, reference="(a|aa)+$")


def worked(limit: Callable[[], AbstractContextManager[None]], seconds: int) -> Outcome:
    """Work a little less than these seconds of the processor, by a clock that is set."""
    now = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.thread_time", lambda: now[0])
        patch.setattr(work_time, "_interrupts", True)
        try:
            with limit(), work_time.counted_work() as check_time:
                now[0] = seconds - 0.5
                check_time()
        except GraderFault:
            return "error"
    return "accepted"


def in_process(work: str, *arguments: object, cpu_seconds: int | None = None, max_bytes: int | None = None) -> Outcome:
    """Work in a process of a server."""
    try:
        call(Task(f"server.hard_work:{work}", arguments, cpu_seconds, max_bytes))
    except TooMuchWork:
        return "error"
    return "accepted"


def hard(seconds: int) -> Outcome:
    """Work within the time of a process, or beyond it, where it may have one second."""
    is_more = seconds > VALUES["server.processes.KILL_SECONDS"]
    return in_process("hold_the_interpreter" if is_more else "surroundings", cpu_seconds=1)


def large(size: int) -> Outcome:
    """Use the memory of a process, or more, where it may have a part of it."""
    is_more = size > VALUES["server.processes.MAX_BYTES"]
    return in_process("allocate", 10**9 if is_more else 10**8, max_bytes=10**9)


def of_suite(share: float) -> Outcome:
    """Return whether a job of a suite may use this share of the memory of the machine."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return "accepted" if max(share * machine, MAX_BYTES) <= job_bytes("a.yaml") else "error"


def questions(size: int) -> Outcome:
    """Ask about a conversation within a lower limit on all questions, or beyond it."""
    reading = Reading(evaluation_input(talk(9)))
    metric = SafetyMetric(scope="window", window=9)
    chars = sum(len(question.request.messages[-1].text) for question in metric.questions(reading))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "MAX_QUESTION_CHARS", chars - (size - VALUES["metrics.judging.MAX_QUESTION_CHARS"]))
        try:
            metric.questions(reading)
        except SuiteFault as error:
            return "error" if error.kind == "limit" else "refused"
    return "accepted"


def judged(option: str) -> Try:
    """Return the entry of an option of a judged metric in a request; without a judge nothing is asked."""
    config = {"scope": "window"}
    return lambda entries, size: entries.evaluate({"metric": "safety", "config": {**config, option: size}})


def submitted(entries: Entries, count: int, attempt: Callable[[Store, Path], Outcome]) -> Outcome:
    """Add as many jobs of one user to a store, and try something."""
    user = hashlib.sha256(b"ana").hexdigest()[:USER_MARK_CHARS]
    folder = Path(tempfile.mkdtemp(dir=entries.folder))
    with Store.open(folder / "jobs.db") as store:
        for number in range(count):
            request = marked_request('{"kind":"suite"}', user)
            row = JobRow(id=f"j{number}", folder=str(folder), kind="suite", created_at=number, request=request)
            store.jobs.add(row)
        return attempt(store, folder)


def waiting(entries: Entries, size: int) -> Outcome:
    """Submit the last of this many jobs of one user."""

    def submit_another(store: Store, folder: Path) -> Outcome:
        jobs = Jobs(store, ServerPolicy(folder))
        try:
            jobs.submit(
                EvaluationJob(conversations=[{"id": "a", "messages": talk(1)}], metrics=["refusal"]), user="ana"
            )
        except TooManyJobs:
            return "error"
        finally:
            jobs.close()
        return "accepted"

    return submitted(entries, size - 1, submit_another)


def claimed(entries: Entries, size: int) -> Outcome:
    """Claim this many jobs of one user at a time."""

    def claim_all(store: Store, folder: Path) -> Outcome:
        by = Claimant("server", str(folder), 1000, user_limit=VALUES["server.job_work.MAX_AT_ONCE_FOR_USER"])
        return "accepted" if all(store.jobs.claim(by) for _ in range(size)) else "error"

    return submitted(entries, size + 1, claim_all)


def half_sent(entries: Entries, size: int, lower: int | None = 3) -> Outcome:
    """Open connections up to a lower limit, or as many more: is the first one still there to send its request?"""
    host = urlsplit(entries.url)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if lower is not None:
            patch.setattr(connection, "MAX_CONNECTIONS", lower)
        address = (host.hostname or "", host.port or 0)
        count = 3 + size - VALUES["server.connection.MAX_CONNECTIONS"]
        first, *_, last = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(count)]
        request = f"GET /livez HTTP/1.1\r\nhost: {host.netloc}\r\n\r\n".encode()
        last.sendall(request)
        assert last.recv(20).startswith(b"HTTP/1.1 200 ")  # by now all are accepted
        first.sendall(request)
        return "accepted" if first.recv(20).startswith(b"HTTP/1.1 200 ") else "error"


def long_answer(entries: Entries, size: int) -> Outcome:
    """Have a text measured that makes an answer of this size: the answer repeats it once."""

    def evaluate(reply: int) -> Reply:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x" * reply}]
        metric = {"metric": "contains", "extractor": "last_assistant"}
        body = {"messages": messages, "metrics": [metric], "reference": "y"}
        return send("POST", f"{entries.url}/api/v1/evaluations", body)

    tried = 10_000_000
    answer = evaluate(size - (len(evaluate(tried).body) - tried))
    return "accepted" if answer.status == 200 and len(answer.body) == size else "refused"


def from_an_address(entries: Entries, size: int) -> Outcome:
    """Open connections from one address up to a lower limit, or as many more: is another one's place taken?"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "MAX_CONNECTIONS_OF_ADDRESS", 3)
        patch.setattr(connection, "is_limited", bool)
        return half_sent(
            entries,
            size - VALUES["server.connection.MAX_CONNECTIONS_OF_ADDRESS"] + VALUES["server.connection.MAX_CONNECTIONS"],
            None,
        )


def requests_of_user(entries: Entries, size: int) -> Outcome:
    """Have requests in progress up to a lower limit, or as many more: is the last one answered?"""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(traffic, "MAX_REQUESTS_OF_USER", 3)
        host = urlsplit(entries.url)
        lines = ("POST /api/v1/evaluations HTTP/1.1", f"host: {host.netloc}", "content-type: application/json")
        head = "\r\n".join([*lines, "content-length: 9", "expect: 100-continue", "", ""]).encode()
        for _ in range(2 + size - VALUES["server.traffic.MAX_REQUESTS_OF_USER"]):
            client = stack.enter_context(socket.create_connection((host.hostname or "", host.port or 0), timeout=30))
            client.sendall(head)
            assert client.recv(20).startswith(b"HTTP/1.1 100 ")  # the server waits for the body
        answer = get(f"{entries.url}/api/v1/runs")
        assert answer.status in (200, 429)
        return "accepted" if answer.status == 200 else "error"


def unread(entries: Entries, seconds: int) -> Outcome:
    """Read nothing for less than a lower limit, or for more: does the rest of the answers come?"""
    is_more = seconds > VALUES["server.connection.STALL_SECONDS"]
    host = urlsplit(entries.url)
    with pytest.MonkeyPatch.context() as patch, socket.socket() as client:
        patch.setattr(connection, "CHECK_SECONDS", 0.1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(30)
        client.connect((host.hostname or "", host.port or 0))
        if is_more:
            patch.setattr(connection, "STALL_SECONDS", 0.5)
        request = f"GET /static/fonts/sans.1.woff2 HTTP/1.1\r\nhost: {host.netloc}\r\n".encode()
        client.sendall((request + b"\r\n") * 200 + request + b"connection: close\r\n\r\n")
        time.sleep(2)
        try:
            while client.recv(2**20):
                pass
        except ConnectionResetError:
            return "error"
        return "accepted"


def late(entries: Entries, seconds: int) -> Outcome:
    """Send the rest of a request within a lower limit, or after it."""
    is_more = seconds > VALUES["server.connection.LONGEST"]
    host = urlsplit(entries.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "LONGEST", 0.2 if is_more else 30)
        with socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\n")
            client.settimeout(1)
            try:
                answer = client.recv(20)
            except TimeoutError:
                client.sendall(f"host: {host.netloc}\r\n\r\n".encode())
                answer = client.recv(20)
        return "accepted" if answer.startswith(b"HTTP/1.1 200 ") else "error"


def shared(share: Callable[[Any], FairShare], *, of_user: bool) -> Try:
    """Return a try of something that requests share: who asks for one more than the limit waits."""

    def attempt(entries: Entries, amount: int) -> Outcome:
        anna, ben = User("anna", "write"), User("ben", "write")

        async def hold() -> bool:
            with Store.open(str(entries.folder / "store.db")) as store:
                part = share(create_app(store, Access.of({"127.0.0.1:80"})))
            async with part.take(anna, 1):
                return part.is_free(anna if of_user else ben, amount - 1)

        return "accepted" if asyncio.run(hold()) else "error"

    return attempt


def bodies(app: Any) -> FairShare:
    return TrafficMiddleware(app)._bodies  # pyright: ignore[reportPrivateUsage]


def places(app: Any) -> FairShare:
    return server_of(app).processes._places  # pyright: ignore[reportPrivateUsage]


def turns(app: Any) -> FairShare:
    return server_of(app).turns


def writing_turns(app: Any) -> FairShare:
    return server_of(app).writing_turns


def exports(app: Any) -> FairShare:
    return server_of(app).exports


def streams(app: Any) -> FairShare:
    return server_of(app).streams


def replays(app: Any) -> FairShare:
    return server_of(app).replays


def searches(app: Any) -> FairShare:
    del app
    return ClusterCache()._places  # pyright: ignore[reportPrivateUsage]


def open_sessions(entries: Entries, number: int) -> Outcome:
    """Return whether this many sessions of one token are open at a time."""
    with Store.open(str(entries.folder / "store.db")) as store:
        begun = [store.sessions.begin(digest_of(f"viva_{number}")) for _ in range(number)]
        return "accepted" if all(map(store.sessions.token_digest, begun)) else "error"


def kept_events(size: int) -> Outcome:
    """Return whether a job keeps two events of this many bytes together."""
    job = Job(JobRecord(id="j", kind="suite", created_at=0), lambda job: None)
    texts = ["", ""]
    for number in (1, 2):
        event = JobEvent(id=number, kind="held", done=0, errors=0, sample_id="")
        texts[number - 1] = "x" * (size // 2 + (size % 2 if number == 2 else 0) - len(EventFrame.of(event).data))
        job.take(JobNews("held", {"sample_id": texts[number - 1]}))
    return "accepted" if len(job.since(0)) == 2 else "error"


def nested_yaml(levels: int) -> str:
    """Return a suite one of whose values is nested this deep, counted from the top."""
    return "name: x\nwhat: " + "[" * (levels - 1) + "1" + "]" * (levels - 1) + "\n"


def document(write: Callable[[int], str], complaint: str) -> tuple[Try, ...]:
    """Return the entry of a YAML file that breaks no other rule than the limit, or breaks another one first."""

    def check(entries: Entries, size: int) -> Outcome:
        path = entries.folder / "suites" / "limit.yaml"
        path.write_text(write(size))
        done = entries.viva("validate", str(path))
        assert done.returncode == 2, done.stderr
        return "refused" if complaint in done.stderr else "accepted"

    return (check,)


RUN = "/api/v1/runs/RUN"
TRIAL = f"{RUN}/samples/a/0"


def unpacking(members: int) -> Outcome:
    """Send `viva watch` a body of this many members of gzip."""
    try:
        unpack(gzip.compress(b"", mtime=0) * members, "gzip")
    except Refused as refused:
        return "error" if refused.status == 400 else "refused"
    return "accepted"


def kept_bytes(size: int) -> Outcome:
    """Take two spans that have this many bytes as they are kept."""

    def spans(texts: list[str]) -> Delivery:
        listed = [{"traceId": "a", "spanId": str(n), "name": text} for n, text in enumerate(texts)]
        return read_document({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]})

    spare = VALUES["features.watch.intake.MAX_KEPT_BYTES"] - 10_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "MAX_KEPT_BYTES", 10_000)  # the value itself would take minutes
        bare = spans(["x" * 300, "x" * 300]).size
        found = spans(["x" * 300, "x" * (300 + size - spare - bare)])
    return "error" if found.rejected else "accepted"


def spans_of_bundle(size: int) -> Outcome:
    """Begin a bundle of this many spans in `viva watch`."""

    def span(number: int) -> Arrival:
        return Arrival(Member(Place(Path("x"), 1), None, "t", identity=str(number)), b"", is_own=False)

    async def begun(spool: Spool) -> list[str]:
        await spool.put(lambda: Delivery([span(number) for number in range(size)]), 1.0)
        return (await spool.work(lambda database, counts: begin(database, counts, Rules(), time.time()))).left_out

    with tempfile.TemporaryDirectory() as folder, closing(Spool(Path(folder) / "s.traces", 10**9)) as spool:
        return "error" if asyncio.run(begun(spool)) else "accepted"


def lines_of_talk(size: int) -> Outcome:
    """Compare a call with this many lines of talk."""
    lines = Lines()
    for number in range(size):
        lines.keep(Line([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": str(number)}]))
    near = list(lines.near(Line([{"role": "user", "content": "Hi"}]), Step("t", "x")))
    return "accepted" if len(near) == size else "error"


def copies(size: int) -> Outcome:
    """Make this many answers in a call that looked something up."""
    made = [{"role": "assistant", "content": str(number)} for number in range(size)]
    given = [{"role": "user", "content": "Hi"}]
    messages = assemble([Step("t", "m", kind="model", inputs=given, outputs=made, passages=["p"])], Loss()).messages
    return "accepted" if sum("retrieval_context" in message for message in messages) == size else "error"


def receivers(_: Entries, count: int) -> Outcome:
    """Have events for this many webhooks that do not answer: is each of them sent to at the same time?"""
    with ExitStack() as stack:
        receiver = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=count))
        receiver.settimeout(1.5)
        store = stack.enter_context(Store.open(f"webhooks-{count}.db"))
        address = f"http://127.0.0.1:{receiver.getsockname()[1]}"
        for number in range(count):
            store.webhooks.add(f"{address}/{number}", ["run.finished"], actor="Ida")
        with store.database.writing() as connection:
            tell(connection, "run.finished", {"run": "x", "suite": "x"})
        sender = Sender(store, private=True, pause=0.05)
        connections: list[socket.socket] = []
        try:
            while len(connections) < count:
                connections.append(stack.enter_context(receiver.accept()[0]))
        except TimeoutError:
            return "error"
        finally:
            for opened in connections:
                opened.close()
            sender.stop()
        return "accepted"


_STOPPED_TWICE = """
import asyncio, os, signal, sys, time
from vivavoce.run import execution

class Work:
    async def execute(self):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.1)
        time.sleep(1.5)

execution.DROP_SECONDS = float(sys.argv[1])
execution.execute(Work(), lambda: None)
"""
"""A program whose work takes 1.5 seconds to end after the second signal."""


def stopped_twice(_: Entries, seconds: int) -> Outcome:
    """Stop work twice that ends within a lower limit, or after it."""
    limit = 0.3 if seconds > VALUES["run.execution.DROP_SECONDS"] else 30
    answer = subprocess.run([sys.executable, "-c", _STOPPED_TWICE, str(limit)], check=False, timeout=30)
    assert answer.returncode in (0, 130)
    return "accepted" if answer.returncode == 0 else "error"


TRIES: dict[str, tuple[Try, ...]] = {
    "safe_template.MAX_TEMPLATE_CHARS": template(lambda size: "x" * size, spare=len("{{ submission }}")),
    "safe_template.MAX_NODES": template(lambda size: "{{ submission }}" * (size - 2), spare=1),
    "safe_template.MAX_DEPTH": template(
        lambda size: "{% if submission %}" * (size - 2) + "x" + "{% endif %}" * (size - 2)
    ),
    "safe_template.MAX_NESTED_LOOPS": template(
        lambda size: "{% for a in [] %}" * size + "{{ submission }}" + "{% endfor %}" * size
    ),
    "safe_template.MAX_SEPARATOR_CHARS": template(lambda size: "{{ submission | join('" + "x" * size + "') }}"),
    "safe_template.MAX_STEPS": (lambda _, size: rendering("{% for a in rows %}{% endfor %}", rows=range(size)),),
    "safe_template.MAX_OUTPUT_CHARS": (lambda _, size: rendering("{{ text }}", text="x" * size),),
    "models.json_schema.MAX_SCHEMA_NODES": schema(lambda size: {"enum": list(range(size - 2))}),
    "models.json_schema.MAX_SCHEMA_DEPTH": schema(
        lambda size: json.loads('{"not":' * (size - 1) + "{}" + "}" * (size - 1))
    )[:1],  # a suite may be nested less deep
    "models.json_schema.MAX_SCHEMA_CHARS": schema(lambda size: {"const": "x" * (size - len('{"const": ""}'))}),
    "models.json_schema.MAX_PATTERN_PARTS": schema(
        lambda size: {
            "type": "object",
            "patternProperties": {
                f"{letter}{{{size // 3 + (size % 3 if letter == 'x' else 0)}}}": {"type": "string"} for letter in "xyz"
            },
        }
    ),
    "models.schema_check.MAX_STEPS": (
        lambda _, size: checked({"type": "array", "items": {"minimum": 0}}, [1] * _items(size - 1)),
        lambda entries, size: entries.evaluate(
            {"metric": "json_schema", "config": {"schema": {"type": "array", "items": {"minimum": 0}}}},
            json.dumps([1] * _items(size - 1)),
        ),
    ),
    "models.schema_check.MAX_REFERENCES": (
        *by_reply(
            "json_schema",
            {"schema": {"type": ["object", "number"], "properties": {"a": {"$ref": "#"}}}},
            lambda size: '{"a":' * size + "1" + "}" * size,
        ),
    ),
    "safe_regex.MAX_PATTERN_CHARS": pattern(lambda size: "x" * size),
    "safe_regex.MAX_REPEATED_PARTS": pattern(lambda size: f"x{{{size}}}"),
    "safe_regex.SECONDS": (endless,),
    "comparing.similarity.MAX_COMPARED_CHARS": by_reply(
        "fuzzy_ratio", {}, lambda size: "ab" * (size // 2) + "a" * (size % 2)
    ),
    "comparing.similarity.MAX_COMPARED_TEXTS": (
        lambda _, size: repeated(size, size),
        lambda entries, size: entries.evaluate({"metric": "repetition"}, messages=talk(size)),
    ),
    "comparing.similarity.MAX_COMPARED_WORDS": (
        lambda _, size: repeated(2, size),
        lambda entries, size: entries.evaluate(
            {"metric": "repetition"},
            messages=[
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "a " * (size - 10)},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "a " * 10},
            ],
        ),
    ),
    "comparing.numbers.MAX_TEXT_CHARS": by_reply("numeric", {}, lambda size: "1".rjust(size, " "), "1"),
    "metrics.exact.personal_data.MAX_SEARCHED_CHARS": (
        lambda entries, size: entries.evaluate({"metric": "personal_data"}, "x" * size),
    ),
    "grading.expected.MAX_ASSERTIONS": (
        lambda entries, size: entries.evaluate(
            {"metric": "expect"}, expect={"all": [{"contains": "Hello"}] * (size - 1)}
        ),
    ),
    "metrics.exact.tool_calls.MAX_PAIRS": (lambda entries, size: entries.calls(500, -(-size // 500)),),
    "metrics.exact.speakers.MAX_PHRASES": (
        lambda entries, size: entries.evaluate(phrases("profanity_terms", "terms", size)),
        lambda entries, size: entries.evaluate(phrases("refusal", "phrases", size)),
    ),
    "suites.document.MAX_CHARS": document(aliased_yaml, "characters"),
    "suites.document.MAX_BYTES": document(lambda size: "name: x\n" + "#" * (size - 8), "bytes"),
    "suites.document.MAX_NODES": document(lambda size: f"name: x\nwhat: {list(range(size - 3))}", "values"),
    "suites.document.MAX_DEPTH": document(nested_yaml, "nested"),
    "comparing.json_values.MAX_DEPTH": (
        lambda entries, size: entries.evaluate(
            {"metric": "turn_count"}, context=json.loads('{"a":' + "[" * (size - 2) + "]" * (size - 2) + "}")
        ),
        lambda entries, size: entries.reply_is_json("[" * size + "]" * size),
    ),
    "store.browse.filter.LONGEST": (
        lambda entries, size: entries.filter('"' + "x" * (size - 2) + '"'),
        lambda entries, size: entries.page(f"/runs/latest?filter={'x' * size}"),
    ),
    "store.browse.filter.MOST": (
        lambda entries, size: entries.filter(" ".join(f"w{i}" for i in range(size))),
        lambda entries, size: entries.page("/runs/latest?filter=" + "+".join(f"w{i}" for i in range(size))),
    ),
    "store.search.query.LONGEST": (
        lambda entries, size: entries.page(f"/api/v1/search?q={'x' * size}"),
        lambda entries, size: entries.page(f"/search?q={'x' * size}"),
    ),
    "store.search.query.MOST_WORDS": (
        lambda entries, size: entries.page("/api/v1/search?q=" + "+".join(f"w{i}" for i in range(size))),
        lambda entries, size: entries.page("/search?q=" + "+".join(f"w{i}" for i in range(size))),
    ),
    "store.search.query.MOST_TERMS": (
        lambda entries, size: entries.page("/api/v1/search?q=" + _terms(size)),
        lambda entries, size: entries.page("/search?q=" + _terms(size)),
    ),
    "server.access.MAX_BODY": (
        lambda entries, size: entries.send("PATCH", RUN, b'{"notes": "x"}' + b" " * (size - 14)),
    ),
    "server.api.strict.MAX_VALUES": (
        lambda entries, size: entries.evaluate({"metric": "turn_count"}, metadata={"n": [0] * (size - 14)}),
    ),
    "work_time.REQUEST_SECONDS": (lambda _, seconds: worked(work_time.limited_work, seconds),),
    "work_time.CONVERSATION_SECONDS": (lambda _, seconds: worked(work_time.conversation_work, seconds),),
    "server.processes.KILL_SECONDS": (lambda _, seconds: hard(seconds),),
    "server.processes.MAX_BYTES": (lambda _, size: large(size),),
    "server.api.evaluations.MAX_ANSWER_BYTES": (long_answer,),
    "server.process_route.MAX_AT_ONCE": (shared(places, of_user=False),),
    "server.process_route.MAX_AT_ONCE_FOR_USER": (shared(places, of_user=True),),
    "server.app.THREADS_FOR_USER": (shared(turns, of_user=True),),
    "server.app.WRITES": (shared(writing_turns, of_user=False),),
    "server.app.WRITES_FOR_USER": (shared(writing_turns, of_user=True),),
    "server.app.EXPORTS": (shared(exports, of_user=False),),
    "server.app.EXPORTS_FOR_USER": (shared(exports, of_user=True),),
    "server.app.STREAMS": (shared(streams, of_user=False),),
    "server.app.STREAMS_FOR_USER": (shared(streams, of_user=True),),
    "server.app.REPLAYS": (shared(replays, of_user=False),),
    "server.app.REPLAYS_FOR_USER": (shared(replays, of_user=True),),
    "features.clusters.cache.SEARCHES": (shared(searches, of_user=False),),
    "features.clusters.cache.SEARCHES_FOR_USER": (shared(searches, of_user=True),),
    "store.access.MAX_OF_TOKEN": (open_sessions,),
    "store.jobs.KEPT_BYTES": (lambda _, size: kept_events(size),),
    "server.processes.SUITE_MEMORY_SHARE": (lambda _, share: of_suite(share),),
    "server.job_work.MAX_AT_ONCE_FOR_USER": (claimed,),
    "server.jobs.MAX_WAITING_FOR_USER": (waiting,),
    "server.webhooks.MAX_RECEIVERS": (receivers,),
    "run.execution.DROP_SECONDS": (stopped_twice,),
    "metrics.judging.MAX_WINDOW_TURNS": (judged("window"),),
    "metrics.judging.MAX_PIECE_TOKENS": (judged("tokens"),),
    "metrics.judging.MAX_QUESTION_CHARS": (lambda _, size: questions(size),),
    "server.connection.MAX_CONNECTIONS": (half_sent,),
    "server.connection.MAX_CONNECTIONS_OF_ADDRESS": (from_an_address,),
    "server.connection.LONGEST": (late,),
    "server.connection.STALL_SECONDS": (unread,),
    "server.traffic.MAX_REQUESTS_OF_USER": (requests_of_user,),
    "server.traffic.MAX_BYTES": (shared(bodies, of_user=False),),
    "server.traffic.MAX_BYTES_OF_USER": (shared(bodies, of_user=True),),
    "server.pages.forms.MAX_FORM": (lambda entries, size: entries.form_of(size),),
    "server.job_requests.MOST_AT_ONCE": (
        lambda entries, size: entries.job({"kind": "evaluation", "metrics": ["refusal"], "max_concurrent": size}),
    ),
    "features.watch.intake.MAX_MEMBERS": (lambda _, size: unpacking(size),),
    "features.watch.intake.MAX_KEPT_BYTES": (lambda _, size: kept_bytes(size),),
    "features.watch.settling.MOST_SPANS": (lambda _, size: spans_of_bundle(size),),
    "features.formats.otel.MAX_NAME_CHARS": (lambda _, size: "accepted" if flat({"x" * size: 1}) else "error",),
    "features.formats.traced.MAX_LINES": (lambda _, size: lines_of_talk(size),),
    "features.formats.traced.MAX_COPIES": (lambda _, size: copies(size),),
    "records.label.LONGEST_COMMENT": (
        lambda entries, size: entries.send("POST", f"{TRIAL}/comments", {"text": "x" * size}),
    ),
    "records.label.LONGEST_NOTE": (
        lambda entries, size: entries.send("PUT", f"{TRIAL}/labels?grader=g", {"verdict": "pass", "note": "x" * size}),
    ),
    "records.label.LONGEST_TITLE": (
        lambda entries, size: entries.send("PATCH", RUN, {"title": "x" * size}),
        lambda entries, size: entries.form("/runs/RUN/remarks", {"title": "x" * size}),
    ),
    "records.label.LONGEST_NOTES": (
        lambda entries, size: entries.send("PATCH", RUN, {"notes": "x" * size}),
        lambda entries, size: entries.form("/runs/RUN/remarks", {"notes": "x" * size}),
    ),
    "records.label.LONGEST_TAG": (
        lambda entries, size: entries.send("PATCH", RUN, {"tags": ["x" * size]}),
        lambda entries, size: entries.form("/runs/RUN/remarks", {"tags": "x" * size}),
    ),
    "records.label.MOST_TAGS": (
        lambda entries, size: entries.send("PATCH", RUN, {"tags": [f"t{i}" for i in range(size)]}),
        lambda entries, size: entries.form("/runs/RUN/remarks", {"tags": ", ".join(f"t{i}" for i in range(size))}),
    ),
    "store.views.LONGEST_NAME": (
        lambda entries, size: entries.send("POST", "/api/v1/views", {"name": "x" * size, "path": "/trends"}),
    ),
}


def _terms(count: int) -> str:
    """Return a search with this many operators."""
    return "+".join(["role:user", *(f"after:2020-01-{day:02}" for day in range(1, count))])


def _items(steps: int) -> int:
    """Return how many items take this many steps: one each, one for `items`, and one for 16 of them."""
    return next(n for n in range(steps, 0, -1) if n + 1 + n // 16 <= steps)


def test_the_page_lists_every_limit_that_is_tried_here() -> None:
    assert TRIES.keys() == VALUES.keys()
    assert (DOCS / "reference" / "limits.md").read_text() == PAGE.limits_page()


@pytest.mark.parametrize(
    ("key", "attempt"),
    [pytest.param(key, attempt, id=f"{key}-{i}") for key, tries in TRIES.items() for i, attempt in enumerate(tries)],
)
def test_a_limit_lets_its_value_pass_and_stops_what_is_beyond(entries: Entries, key: str, attempt: Try) -> None:
    assert attempt(entries, VALUES[key]) == "accepted"
    assert attempt(entries, VALUES[key] + 1) == BEYOND[key]
