"""Which stored runs a server continues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Run
from vivavoce.server.job_requests import DemoJob, EvaluationJob, SuiteJob
from vivavoce.server.jobs import Jobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.stored_runs import StoredRuns
from vivavoce.store.jobs import JobRow
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .api.test_jobs import TEST, ended, played, submit
from .live import serving

REFUNDS = "suites/refunds.yaml"
TALK = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
EVALUATION = EvaluationJob(conversations=[{"id": "x", "messages": TALK}], metrics=["refusal"])
SECRET_TARGET = {"kind": "http", "url": "http://127.0.0.1:9/", "headers": {"x": "${PATH}"}, "response_path": "a"}

Change = Callable[[dict[str, Any]], object]


def stored_runs(workspace: Path, *models: str) -> StoredRuns:
    """Return what the server of a folder continues."""
    return StoredRuns(ServerPolicy(workspace, frozenset(models)), workspace / ".vivavoce" / "jobs")


def run_of(store: Store, workspace: Path, request: EvaluationJob | SuiteJob | DemoJob) -> Run:
    """Return the run of a request."""
    jobs = Jobs(store, ServerPolicy(workspace))
    with serving(store, ServerPolicy(workspace)) as url:
        record = ended(url, jobs.submit(request).id)
    jobs.close()
    assert record.run is not None
    return store.run(record.run)


def change_run(run: Run, change: Change, **values: Any) -> Run:
    """Return a run whose stored suite was changed."""
    spec = json.loads(json.dumps(run.spec))
    change(spec)
    return run.model_copy(update={"spec": spec, **values})


SUITE_CHANGES: dict[str, Change] = {
    "code of the target": lambda spec: spec["target"].update(function="/tmp/evil.py:reply"),
    "another target": lambda spec: spec.update(target=SECRET_TARGET),
    "several targets": lambda spec: spec.update(target=None, targets=[SECRET_TARGET]),
    "code of a grader": lambda spec: spec["graders"]["said"].update(kind="function", function="evil.py:grade"),
    "a further grader": lambda spec: spec["graders"].update(x={"kind": "metric", "metric": "evil.py:Metric"}),
    "the grader of assertions": lambda spec: spec["graders"].update(
        expect={"kind": "model_judge", "prompt": "x", "model": "evil.py:Model"}
    ),
    "a dataset": lambda spec: spec.update(dataset={"path": "/etc/passwd"}),
    "a script": lambda spec: spec.update(setup_script="evil.py:setup"),
    "a reward": lambda spec: spec.update(reward={"kind": "function", "function": "evil.py:reward"}),
    "a recording": lambda spec: spec.update(recording={"path": "/tmp/evil.json"}),
    "no suite": lambda spec: spec.clear(),
}


def test_a_run_that_uses_more_than_its_suite_is_not_continued(store: Store, workspace: Path) -> None:
    run = run_of(store, workspace, SuiteJob(suite=REFUNDS))
    stored_runs(workspace).check(run, REFUNDS)
    for change in SUITE_CHANGES.values():
        with pytest.raises(UsageError):
            stored_runs(workspace).check(change_run(run, change), REFUNDS)


def test_a_run_is_continued_only_with_a_suite_of_the_served_folder(
    store: Store, workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = run_of(store, workspace, SuiteJob(suite=REFUNDS))
    suite = workspace / REFUNDS
    suite.write_text(suite.read_text().replace("name: refunds", "name: refunds\nmax_concurrent: 3"))
    stored_runs(workspace).check(run, REFUNDS)
    with pytest.raises(UsageError, match="its suite is not in the served folder"):
        stored_runs(tmp_path_factory.mktemp("other")).check(run, REFUNDS)
    suite.write_text(suite.read_text().replace("bot.py:reply", "bot.py:answer"))
    with pytest.raises(UsageError, match=f"refunds.yaml has another target now.*viva run --resume {run.id}"):
        stored_runs(workspace).check(run, REFUNDS)


EVALUATION_CHANGES: dict[str, Change] = {
    "code": lambda spec: spec["graders"].update(x={"kind": "metric", "metric": "evil.py:Metric"}),
    "a function": lambda spec: spec["graders"].update(x={"kind": "function", "function": "evil.py:grade"}),
    "a model": lambda spec: spec["graders"]["refusal"].update(model="evil.py:Model"),
    "an address": lambda spec: spec["graders"]["refusal"].update(settings={"api_base": "http://127.0.0.1:9"}),
    "a key": lambda spec: spec["graders"]["refusal"].update(api_key_env="PATH"),
    "a file": lambda spec: spec["dataset"].update(path="/etc/passwd"),
    "a policy": lambda spec: spec["dataset"].update(policy_path="/etc/passwd"),
    "a target": lambda spec: spec.update(driver="scripted", target=SECRET_TARGET),
    "a script": lambda spec: spec.update(setup_script="evil.py:setup"),
}


def test_an_evaluation_is_continued_with_what_a_request_may_name(store: Store, workspace: Path) -> None:
    run = run_of(store, workspace, EVALUATION)
    stored_runs(workspace).check(run, None)
    for change in EVALUATION_CHANGES.values():
        with pytest.raises(UsageError):
            stored_runs(workspace).check(change_run(run, change), None)


def test_a_demo_is_continued_with_its_own_bot(store: Store, workspace: Path) -> None:
    run = run_of(store, workspace, DemoJob(release="v2"))
    stored_runs(workspace).check(run, None)
    with pytest.raises(UsageError):
        stored_runs(workspace).check(change_run(run, SUITE_CHANGES["code of the target"]), None)


TEST_CHANGES: dict[str, Change] = {
    "a target": lambda spec: spec.update(target=SECRET_TARGET),
    "a tester": lambda spec: spec["tester"].update(model="evil.py:Model"),
    "tools": lambda spec: spec["tester"].update(tools=["evil.py:tool"]),
    "a key": lambda spec: spec["tester"].update(api_key_env="PATH"),
    "a grader": lambda spec: spec["graders"].update(goal={"kind": "function", "function": "evil.py:grade"}),
    "a file": lambda spec: spec["dataset"].update(path="/etc/passwd"),
}


def test_a_test_is_continued_with_the_target_of_its_suite(store: Store, workspace: Path) -> None:
    with LoopbackServer(played) as models:
        name = f"{models.base_url}#player"
        with serving(store, ServerPolicy(workspace, frozenset([name]))) as url:
            job = {**TEST, "tester": name, "judge": name, "metrics": ["refusal"], "policy": "Refunds need an order."}
            record = ended(url, submit(url, job).id)
    assert record.run is not None
    run, runs = store.run(record.run), stored_runs(workspace, name)
    runs.check(run, REFUNDS)
    with pytest.raises(UsageError, match="tester"):
        stored_runs(workspace).check(run, REFUNDS)
    for change in TEST_CHANGES.values():
        with pytest.raises(UsageError):
            runs.check(change_run(run, change), REFUNDS)
    with pytest.raises(UsageError):
        runs.check(change_run(run, list, base="/tmp"), REFUNDS)
    with pytest.raises(UsageError):
        runs.check(run, None)


def test_an_open_job_does_not_start_the_code_of_a_stored_run(store: Store, workspace: Path) -> None:
    mark, code = workspace / "mark", workspace / "evil.py"
    code.write_text(f"open({str(mark)!r}, 'w').close()\ndef reply(messages):\n    return 'x'\n")
    run = change_run(
        store.run("latest"),
        lambda spec: spec["target"].update(function=f"{code}:reply"),
        id="refunds-foreign",
        base=str(workspace / "suites"),
        status="interrupted",
        finished_at=None,
    )
    grading = store.gradings(store.run("latest").id)[0]
    first = grading.model_copy(update={"id": "refunds-foreign-g1", "run_id": run.id, "finished_at": None})
    store.add_run(run, first)
    row = JobRow(
        id="job-0123456789ab",
        folder=str(workspace.resolve()),
        kind="suite",
        created_at=time.time(),
        suite=REFUNDS,
        run=run.id,
        grading=first.id,
        request=SuiteJob(suite=REFUNDS).model_dump_json(),
    )
    store.jobs.add(row)
    with serving(store, ServerPolicy(workspace)) as url:
        record = ended(url, row.id)
    assert (record.status, mark.exists()) == ("interrupted", False)
    assert record.detail is not None
    assert "a job cannot continue refunds-foreign" in record.detail
