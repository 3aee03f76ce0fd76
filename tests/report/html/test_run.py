"""What a page about a run shows: the verdict and its conditions, metrics, targets, histograms, and its origin."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vivavoce.files.plain_yaml import yaml_text
from vivavoce.records.details import Latency
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import Usage
from vivavoce.report.html.run import MAX_SUITE_CHARS, MAX_SUITE_LINES, facts, suite_lines
from vivavoce.run.summary import Summary

RUN = Run(id="r", suite="s", spec={}, base="/s", started_at=0.0)
EMPTY = Summary(attempts=0, failed_attempts=0, graders=[])


def grading(**spec: object) -> Grading:
    return Grading(id="g", run_id="r", spec=spec, created_at=0.0)


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert facts(RUN, grading(), EMPTY) == []


def test_judges_commit_usage_and_latency_are_told() -> None:
    run = RUN.model_copy(update={"options": {"revision": "0123456789abcdef" * 2 + "01234567"}})
    used = {"judge": Usage(input_tokens=100, output_tokens=20, cost=0.25, calls=2)}
    latency = [Latency(target="bot", replies=3, p50=0.5, p95=1.5)]
    spec = grading(judge="a/one", graders={"goal": {"model": "b/two"}, "tone": {"model": "b/two"}, "exact": {}})
    fact_texts = dict(facts(run, spec, EMPTY.model_copy(update={"usage": used, "latency": latency})))
    assert fact_texts == {
        "judges": "b/two, a/one",
        "commit": "0123456789",
        "used": "100 tokens in, 20 out, $0.25",
        "a reply": "0.50 s median, 1.50 s 95th percentile",
    }


def test_only_the_lines_of_a_suite_that_are_shown_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    suites: list[Any] = []

    def write(suite: Any) -> str:
        suites.append(suite)
        return yaml_text(suite)

    monkeypatch.setattr("vivavoce.report.html.run.yaml_text", write)
    spec = {"name": "s", "graders": {f"g{i}": {"choices": [[n] for n in range(1000)]} for i in range(50)}}
    lines = list(_lines_of(spec))
    assert lines == yaml_text(spec).splitlines()[:MAX_SUITE_LINES]
    assert len(json.dumps(suites)) < len(json.dumps(spec)) / 5
    text = {"name": "x" * (MAX_SUITE_CHARS + 100), "more": "y" * 100}
    assert sum(map(len, _lines_of(text))) < MAX_SUITE_CHARS + 100


def _lines_of(spec: dict[str, Any]) -> list[str]:
    return suite_lines(RUN.model_copy(update={"spec": spec}), grading())
