"""Experiments as plain data, with neither a file nor a suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.custom import function_metric
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring, Scripted
from vivavoce.samples.sample import Sample
from vivavoce.targets.function import FunctionTarget


def polite(messages: list[Any]) -> bool:
    return "please" in messages[-1].text


def asked(count: int) -> list[Sample]:
    return [Sample(id=f"s{i}", input="Yes please" if i % 2 else "Yes") for i in range(count)]


def recorded(count: int) -> list[Sample]:
    said = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": "Yes please"}]
    return [Sample.model_validate({"id": f"s{i}", "messages": said}) for i in range(count)]


def samples_of(samples: Sequence[Sample]) -> Samples:
    return Samples(lambda: samples, len(samples), f"{len(samples)} samples", "'by hand'")


def experiment(given: Sequence[Sample], **changes: Any) -> Experiment:
    """Return an experiment over samples, which a target that echoes them is asked unless they are recorded."""
    parts: dict[str, Any] = {
        "name": "By hand",
        "samples": samples_of(given),
        "scoring": Scoring((metric_grader("polite", function_metric(polite)),)),
        "limits": Limits(4),
        "description": Description({"name": "By hand"}, Path(), "a test"),
    }
    if not any(sample.messages for sample in given):
        parts |= {"driver": Scripted(), "targets": (FunctionTarget(echo),)}
    return Experiment(**{**parts, **changes})


def echo(message: str) -> str:
    return message
