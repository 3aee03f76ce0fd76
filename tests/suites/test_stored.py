"""What is kept of an experiment with its run: the same form whoever began it, and old runs go on from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunOptions, Store, evaluate
from vivavoce.records.run import Grading, Run
from vivavoce.run.execution import Execution
from vivavoce.settings import settings
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import open_regrading, reopen_run, suite_run
from vivavoce.suites.load import Suite, load_suite, stored_suite
from vivavoce.suites.plan import plan_of

from .talks import rows, write_rows

REFUSAL: dict[str, Any] = {
    "temperature": 0.0,
    "settings": {},
    "max_retries": 5,
    "timeout": 120.0,
    "kind": "metric",
    "metric": "refusal",
    "config": {},
    "scope": "conversation",
}
REPLAYED: dict[str, Any] = {"driver": "replay", "agreement": [], "trials": 1}
SUITE = {"name": "echoes", "dataset": "d.jsonl", "target": {"kind": "function", "function": "bot.py:echo"}}
ECHOES: dict[str, Any] = {
    "name": "echoes",
    "dataset": {"path": "d.jsonl", "fields": {}},
    "driver": "scripted",
    "target": {"timeout": 300.0, "max_retries": 2, "kind": "function", "function": "bot.py:echo"},
    "graders": {"refusal": REFUSAL},
    "agreement": [],
    "trials": 1,
    "max_concurrent": 15,
}


def check_stored(stored: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that a record has all that is expected; how a grader is spelled out is not its business."""
    assert {**stored, "graders": {}} == {**expected, "graders": {}}
    assert stored["graders"].keys() == {"refusal"}
    assert {name: stored["graders"]["refusal"][name] for name in ("kind", "metric")} == {
        "kind": "metric",
        "metric": "refusal",
    }


def build_asking() -> Suite:
    Path("bot.py").write_text("def echo(message):\n    return message\n")
    Path("d.jsonl").write_text("".join(json.dumps({"id": f"s{i}", "input": "Hi."}) + "\n" for i in range(3)))
    Path("suite.yaml").write_text(
        json.dumps({**SUITE, "graders": {"refusal": {"kind": "metric", "metric": "refusal"}}})
    )
    return load_suite(Path("suite.yaml").absolute())


def build_judged() -> Suite:
    return judging_suite(write_rows(rows(3)), ["refusal"])


def spec_of_judged() -> dict[str, Any]:
    path = str(Path("talks.jsonl").absolute())
    dataset = {"path": path, "fields": {}}
    return {
        **REPLAYED,
        "name": "judge talks",
        "dataset": dataset,
        "graders": {"refusal": REFUSAL},
        "max_concurrent": 64,
    }


async def run_execution(work: Execution) -> tuple[Run, Grading]:
    result = await work.execute()
    return result.run, result.grading


async def test_the_record_of_a_suite_has_every_key_of_it() -> None:
    with Store.open(settings().store) as store:
        run, grading = await run_execution(suite_run(build_asking(), RunOptions(), store=store))
    check_stored(run.spec, ECHOES)
    assert run.spec == grading.spec
    assert (run.base, run.options["suite"]) == (str(Path.cwd()), "suite.yaml")
    assert stored_suite(run).spec == build_asking().spec


async def test_the_record_of_a_command_and_of_python_has_the_form_of_a_suite() -> None:
    with Store.open(settings().store) as store:
        run, _ = await run_execution(suite_run(build_judged(), RunOptions(), store=store))
    check_stored(run.spec, spec_of_judged())
    assert run.options == {
        "cache": True,
        "replay": False,
        "batch": False,
        "suite": "judge",
        "dataset": plan_of(build_judged(), RunOptions()).dataset,
        "code": None,
        "planned": 3,
    }
    own = evaluate(rows(1), ["refusal"], name="E", max_concurrent=5).run
    dataset = {"path": "(given in Python)", "fields": {}}
    check_stored(own.spec, {**REPLAYED, "name": "E", "dataset": dataset, "max_concurrent": 5})
    assert (own.options["suite"], own.options["dataset"]) == ("evaluation", "given in Python")
    assert stored_suite(own).spec.graders.keys() == {"refusal"}


@pytest.mark.parametrize(("suite", "spec"), [(build_asking, lambda: ECHOES), (build_judged, spec_of_judged)])
async def test_a_run_that_is_known_by_its_record_alone_goes_on_and_is_graded_again(suite: Any, spec: Any) -> None:
    described: Suite = suite()
    with Store.open(settings().store) as store:
        made, grading = await run_execution(suite_run(described, RunOptions(), store=store))
        old = Run(
            id="old-1",
            suite=described.spec.name,
            spec=spec(),
            base=str(Path.cwd()),
            options={name: made.options[name] for name in ("cache", "replay", "suite", "dataset", "code")},
            status="interrupted",
            started_at=1.0,
        )
        store.add_run(old)
        prints = grading.fingerprints
        store.add_grading(Grading(id="old-1-g1", run_id="old-1", spec=spec(), fingerprints=prints, created_at=1.0))
        run, _ = await run_execution(reopen_run("old-1", store=store))
        assert (run.id, run.status, store.counts("old-1")) == ("old-1", "finished", (3, 0))
        again = await open_regrading("old-1", store=store).execute()
        assert (again.grading.id, again.grading.fingerprints) == ("old-1-g2", prints)
        assert again.summary.grader("refusal").scored == 3
