"""Why a run passes or fails, in words, and the errors behind it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.conftest import Viva
from cli.conftest import viva as viva
from server.live import get, serving
from server.pages.cases import keep, outcome
from vivavoce.client import Client
from vivavoce.features.calibration.calibration import from_people
from vivavoce.records.label import CorrectedRate, Label
from vivavoce.records.score import Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.reasons import corrected_lines, corrected_text
from vivavoce.store.store import Store


def kept(store: Store, name: str, passed: int, **more: Any) -> None:
    held = [
        outcome(f"s{n:02}", grades={"goal": Score(value=float(n < passed))}, position=n, target=target)
        for target in more.pop("targets", ["bot"])
        for n in range(50)
    ]
    keep(store, held, name, fingerprints={"goal": "f1"}, **more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two runs of one judge: the first was calibrated, on forty of its fifty conversations."""
    with Store.open(str(tmp_path / "x.db")) as store:
        kept(store, "run-1", 30)
        kept(store, "run-2", 35, at=2000.0)
        for n in range(40):
            said = {"sample_id": f"s{n:02}", "target": "bot", "trial": 0, "grader": "goal", "author": "Ida"}
            good = n < 26 or n == 39
            told = {"verdict": "pass" if good else "fail", "created_at": 1.0, "drawn": 1.0, "blind": True}
            store.labels.set("run-1", Label.model_validate({**said, **told}))
        store.calibrations.add(from_people(store, store.grading("run-1"), "goal", "Ida"))
        yield store


def graded(store: Store, name: str) -> GradedRun:
    return GradedRun(store, store.run(name), store.grading(name))


def rate(store: Store, name: str) -> CorrectedRate:
    found = graded(store, name).summary().grader("goal").corrected
    assert found is not None
    return found


def written(write: Any, one: GradedRun) -> str:
    out = io.StringIO()
    write(one, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "method", "of"),
    [("run-1", "prediction_powered", "of this run"), ("run-2", "rogan_gladen", "of run run-1")],
)
def test_every_reader_says_the_same(store: Store, viva: Viva, name: str, method: str, of: str) -> None:
    one, found = graded(store, name), rate(store, name)
    assert found.method == method
    said = corrected_text(found, name)
    assert of in said
    assert f"{found.raw:.1%} pass by the judge, {found.value:.1%} corrected" in said
    summary = one.summary()
    assert list(corrected_lines(summary, name)) == [f"goal: {said}"]
    assert said in " ".join(viva("show", name, "--store", store.place).stdout.split())
    assert f"`goal: {said}`" in written(write_markdown, one)
    (mine,) = json.loads(written(write_json, one))["summary"]["graders"]
    assert CorrectedRate.model_validate(mine["corrected"]) == found
    properties = ElementTree.fromstring(written(write_junit, one)).findall("testsuite/properties/property")
    assert [(p.get("name"), p.get("value")) for p in properties] == [("corrected.goal", said)]
    with serving(store) as base:
        assert f"goal: {said}" in get(f"{base}/runs/{name}").text
        (mine,) = json.loads(get(f"{base}/api/v1/runs/{name}").text)["summary"]["graders"]
        assert CorrectedRate.model_validate(mine["corrected"]) == found
        with Client(base) as client:
            assert client.run(name).summary.grader("goal").corrected == found


def test_a_judge_that_was_never_calibrated_is_not_mentioned(store: Store) -> None:
    keep(store, [outcome("s", grades={"tone": Score(value=1.0)})], "run-3", at=3000.0, fingerprints={"tone": "f7"})
    assert graded(store, "run-3").summary().grader("tone").corrected is None
    assert "correct" not in written(write_markdown, graded(store, "run-3"))


def test_a_judge_that_changed_is_stale_and_says_so(store: Store) -> None:
    held = [outcome("s", grades={"goal": Score(value=1.0)})]
    keep(store, held, "run-3", at=3000.0, fingerprints={"goal": "changed"})
    said = (
        "goal: not corrected: it was calibrated in run run-1 with another prompt, model or setting; calibrate it again"
    )
    assert list(corrected_lines(graded(store, "run-3").summary(), "run-3")) == [said]
    assert said in written(write_markdown, graded(store, "run-3"))


def test_each_target_has_its_own_rate(store: Store) -> None:
    kept(store, "run-3", 20, at=3000.0, targets=["bot", "other"])
    found = graded(store, "run-3").summary()
    assert [line.partition(":")[0] for line in corrected_lines(found, "run-3")] == ["goal of bot", "goal of other"]


def test_a_newer_calibration_counts_at_once(store: Store) -> None:
    before = rate(store, "run-1")
    said = {"sample_id": "s45", "target": "bot", "trial": 0, "grader": "goal", "author": "Ida", "verdict": "pass"}
    store.labels.set("run-1", Label.model_validate({**said, "created_at": 2.0, "drawn": 1.0}))
    assert rate(store, "run-1") == before, "labels count when they are kept"
    store.calibrations.add(from_people(store, store.grading("run-1"), "goal", "Ida"))
    assert rate(store, "run-1").labels == 41


def test_a_run_that_is_not_finished_has_no_corrected_rate(store: Store) -> None:
    run = store.run("run-2")
    store.update_run(run.model_copy(update={"status": "running"}))
    with store.claimed("run-2"):
        assert graded(store, "run-2").summary().grader("goal").corrected is None
