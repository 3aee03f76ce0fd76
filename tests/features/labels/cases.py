"""Outcomes whose rows have labels."""

from __future__ import annotations

import json
from typing import Any

from report.cases import outcome
from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding, FindingState, Score
from vivavoce.report.label_agreement import Rated, collect_rated


def labelled_outcome(sample: str, score: Score | float, label: object, reply: str = "Hello!", **more: Any) -> Outcome:
    """Return an outcome with a label `good`, None for a row without labels."""
    base = outcome(sample, {"judge": score}, texts=[reply], trial=more.pop("trial", 0))
    labels = {} if label is None else {"labels": {"good": label, "deep": {"er": label}}}
    row = json.dumps({"id": sample, "input": "Hi", **labels, **more})
    return base.model_copy(update={"attempt": base.attempt.model_copy(update={"sample": row})})


def sure(value: float, confidence: float, **items: FindingState) -> Score:
    """Return a score with the confidence of its judge, and with the items of its list."""
    findings = [
        Finding(kind="check", what=f"Is it {name}?", verdict=state, state=state, data={"item": name})
        for name, state in items.items()
    ]
    return Score(value=value, confidence=confidence, findings=tuple(findings))


def rate_outcomes(*outcomes: Outcome, label: str = "good", tag: str | None = None) -> Rated:
    (rated_cases,) = collect_rated(outcomes, ["judge"], label, tag)
    return rated_cases
