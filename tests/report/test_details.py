"""Where scores vary, in words."""

from __future__ import annotations

from vivavoce.records.details import VarianceSummary
from vivavoce.report.details import variance_text


def variance(**shares: float | None) -> VarianceSummary:
    return VarianceSummary.model_validate({"name": "right", "target": "bot", **shares})


def test_shares_add_up_and_name_what_was_not_measured() -> None:
    assert variance_text(variance(samples=0.1, trials=0.3)) == "25% samples, 75% target"
    assert variance_text(variance(samples=0.2)).startswith("100% samples; not measured: the target")


def test_one_sample_has_no_shares() -> None:
    assert variance_text(variance(trials=0.25)) == "shares cannot be estimated from one sample"
    assert variance_text(variance(trials=0.0)) == ""
