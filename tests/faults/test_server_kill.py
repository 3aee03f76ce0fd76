"""A server that is killed again and again while jobs of every kind are at work: each goes on by itself after the first
crash and when it is resumed after the second. Nothing is lost, and no stored conversation is held or judged again."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from forked import kill as kill_call
from forked import program
from stage import say, verdict
from vivavoce.client import Client
from vivavoce.errors import Fault
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_work import CRASHED
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .test_server_restart import serve

KILLS = 5
ROWS = 10
SUITE = """\
name: {name}
dataset: {{rows: [{rows}]}}
target: {{kind: http, url: "{url}/bot", body: {{said: "{{{{ message }}}}"}}, reply: said}}
graders:
  goal: {{kind: metric, metric: goal_achievement, model: "{url}/v1#judge"}}
max_concurrent: 2
"""


def respond(body: dict[str, Any]) -> Any:
    """Be the bot, the judge and the tester."""
    model = body.get("model")
    if str(model).startswith("judge"):
        return verdict(True)
    if model == "tester":
        goal = re.search(r"T\dx", json.dumps(body["messages"]))
        return say(f"I want {goal and goal[0]}")
    return {"said": f"here is {body['said']}"}


DEADLY = """
import os, signal, sys
from vivavoce.cli.main import main
from vivavoce.store.jobs import JobQueue

left, save = int(sys.argv.pop(1)), JobQueue.save

def save_or_die(self, *given):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, *given)

JobQueue.save = save_or_die
main()
"""
"""A server that is killed before it saves a job for the so-manieth time."""


class Work:
    """One job of each kind and what of it is stored; each conversation is known by a word that all requests name."""

    def __init__(self, folder: Path, client: Client) -> None:
        self.folder = folder
        base = client.submit("suite", suite="D.yaml").wait()
        cut = client.submit("suite", suite="C.yaml", max_calls=4).wait()
        assert (base.status, cut.status) == ("finished", "interrupted")
        rows = [{"id": name, "goal": f"Reach {name}", "messages": talk(name)} for name in names("B")]
        self.requests: list[dict[str, Any]] = [
            {"kind": "grade", "run": base.run, "suite": "graded.yaml"},
            {"kind": "resume", "resume": cut.run},
            {"kind": "suite", "suite": "A.yaml", "key": "a"},
            {"kind": "evaluation", "conversations": rows, "metrics": ["goal_achievement"]},
            *({"kind": "test", "suite": "A.yaml", "goal": f"Reach {name}", "max_turns": 2} for name in names("T")[:3]),
        ]
        self.jobs = [client.submit(**request).record for request in self.requests]
        self.before = {base.run, cut.run}

    def stored(self) -> set[str]:
        """Return the words of what is stored: that these are asked again would be paid twice."""
        found: set[str] = set()
        with Store.open(str(self.folder / ".vivavoce" / "vivavoce.db")) as store:
            for run in store.runs():
                grading = store.gradings(run.id)[-1]
                graded = {row.key for row in store.scores(grading.id)}
                for attempt in store.attempts(run.id):
                    if attempt.key in graded:
                        found.add(word_of(attempt.sample))
        return found


def names(letter: str) -> list[str]:
    return [f"{letter}{number}x" for number in range(ROWS)]


def word_of(sample: str) -> str:
    return json.loads(sample)["goal"].removeprefix("Reach ")


def talk(name: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"I want {name}"}, {"role": "assistant", "content": f"here is {name}"}]


def write(folder: Path, server: LoopbackServer) -> None:
    for letter in "ACD":
        rows = ", ".join(f'{{id: {name}, input: "I want {name}", goal: "Reach {name}"}}' for name in names(letter))
        suite = SUITE.format(name=letter.lower(), rows=rows, url=server.url)
        (folder / f"{letter}.yaml").write_text(suite, "utf-8")
        again = suite.replace("#judge", "#judge-2")
        (folder / "graded.yaml").write_text(again, "utf-8")


def test_jobs_of_every_kind_go_on_after_every_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    with LoopbackServer(respond) as models:
        write(tmp_path, models)
        for variable, role in (("VIVAVOCE_JUDGE", "judge"), ("VIVAVOCE_TESTER", "tester")):
            monkeypatch.setenv(variable, f"{models.base_url}#{role}")
        with serve(tmp_path) as (process, client):
            work = Work(tmp_path, client)
            models.delay = 0.2
            kill(process, chance)
        asked_again: dict[int, set[str]] = {}
        for _ in range(KILLS - 1):
            asked_again[len(models.requests)] = work.stored()
            with serve(tmp_path) as (process, _):
                kill(process, chance)
        asked_again[len(models.requests)] = work.stored()
        models.delay = 0.0
        with serve(tmp_path) as (_, client):
            ended = [finish(client, job, request) for job, request in zip(work.jobs, work.requests, strict=True)]
    assert [(one.kind, one.status, one.detail) for one in ended if one.status != "finished"] == []
    assert [one.done for one in ended] == [*[ROWS] * 4, 1, 1, 1]
    for since, stored in asked_again.items():
        later = " ".join(json.dumps(one.body) for one in models.requests[since:])
        assert not {word for word in stored if word in later}, f"asked again after request {since}"
    with Store.open(str(tmp_path / ".vivavoce" / "vivavoce.db")) as store:
        assert {run.id for run in store.runs()} == {*work.before, *(str(one.run) for one in ended)}
        assert {run.status for run in store.runs()} == {"finished"}


@pytest.mark.parametrize("kind", ["suite", "grade"])
def test_a_kill_before_any_note_of_a_job_leaves_no_second_run(tmp_path: Path, kind: Literal["suite", "grade"]) -> None:
    with LoopbackServer(respond) as models:
        write(tmp_path, models)
        with serve(tmp_path) as (_, client):
            base = str(client.submit("suite", suite="D.yaml").wait().run)
        body = {"suite": "A.yaml"} if kind == "suite" else {"run": base, "suite": "graded.yaml"}
        for notes in (1, 2, 3):  # before it starts, as soon as its run is there, while it goes on or when it is done
            with serve(tmp_path, str(program("python")), "-c", DEADLY, str(notes)) as (process, client):
                with suppress(Fault):  # it may end before it answers
                    client.submit(kind, key=f"before-{notes}", **body)
                assert process.wait(60) == -signal.SIGKILL
            with serve(tmp_path) as (_, client):
                ended = client.submit(kind, key=f"before-{notes}", **body).wait()
            assert (ended.status, ended.detail) == ("finished", None)
        with Store.open(str(tmp_path / ".vivavoce" / "vivavoce.db")) as store:
            runs = store.runs()
            assert len(runs) == (1 if kind == "grade" else 4)
            assert {run.status for run in runs} == {"finished"}
            gradings = [grading for run in runs for grading in store.gradings(run.id)]
            assert len(gradings) == 4
            assert None not in [grading.finished_at for grading in gradings]


def finish(client: Client, job: JobRecord, request: dict[str, Any]) -> JobRecord:
    """Wait for a job; where servers crashed twice while it ran, resume its run or submit it again, as a user does."""
    record = client.job(job.id).wait()
    if record.detail != CRASHED:
        return record
    assert record.status == "interrupted"
    if record.run is None:
        again: dict[str, Any] = {"key": "again"} if "key" in request else {}
        return client.submit(**request | again).wait()
    return client.submit("resume", resume=record.run).wait()


def kill(process: subprocess.Popen[str], chance: random.Random) -> None:
    time.sleep(chance.uniform(0.0, 1.5))
    kill_call(process)
