"""What tells the dataset of a suite from another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vivavoce.suites.plan import Plan, hash_file

from .talks import rows, written


def test_a_dataset_is_known_by_its_content() -> None:
    path = written(rows(2))
    plan = Plan(path, Path(), {}, True, 1, None, None, None, 8)
    before = plan.dataset
    written(rows(2))
    assert plan.dataset == before
    written(rows(3))
    assert hash_file(path) == plan.dataset != before
    ruled = replace(plan, policy="Be kind.")
    assert len({plan.dataset, ruled.dataset, replace(plan, policy="Be brief.").dataset}) == 3
