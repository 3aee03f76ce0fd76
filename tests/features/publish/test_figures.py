"""What trackers of experiments keep of a run."""

from __future__ import annotations

import sys

import pytest

from report.cases import BROKEN_JUDGE, keep, outcome
from vivavoce.errors import MissingExtra, UsageError
from vivavoce.features.publish.conversation import COLUMNS, sample_cells
from vivavoce.features.publish.scores import figures, parameters
from vivavoce.records.score import failed
from vivavoce.report.export import publish
from vivavoce.store.store import Store


async def test_figures_have_intervals_and_count_errors(store: Store) -> None:
    outcomes = [outcome("a"), outcome("b", {"exact": 0.0}), outcome("c", {"exact": failed(BROKEN_JUDGE)})]
    figures_of_run = figures((await keep(store, outcomes)).summary())
    assert (figures_of_run["exact/mean"], figures_of_run["exact/pass_rate"]) == (0.5, 0.5)
    assert figures_of_run["exact/low"] < 0.5 < figures_of_run["exact/high"]
    assert (figures_of_run["exact/scored"], figures_of_run["exact/errors"], figures_of_run["conversations"]) == (
        2,
        1,
        3,
    )


async def test_several_targets_have_figures_of_their_own(store: Store) -> None:
    outcomes = [outcome("a", target="old"), outcome("a", {"exact": 0.0}, target="new")]
    figures_of_run = figures((await keep(store, outcomes)).summary())
    assert (figures_of_run["old/exact/mean"], figures_of_run["new/exact/mean"]) == (1.0, 0.0)
    assert "exact/low" not in figures_of_run


async def test_parameters_say_what_decided_the_scores(store: Store) -> None:
    spec = {
        "driver": "scripted",
        "dataset": {"path": "rows.jsonl"},
        "targets": [{"kind": "openai", "name": "bot", "model": "small", "base_url": "http://localhost/v1"}],
        "graders": {"judge": {"kind": "metric", "metric": "goal_achievement", "model": "openai:large"}},
        "trials": 3,
    }
    parameters_of_run = parameters(await keep(store, [outcome("a")], spec=spec, gate=None))
    assert parameters_of_run == {
        "suite": "support",
        "vivavoce": "0.1.0",
        "driver": "scripted",
        "dataset": "rows.jsonl",
        "trials": "3",
        "target/bot/kind": "openai",
        "target/bot/model": "small",
        "target/bot/base_url": "http://localhost/v1",
        "grader/judge/judge": "openai:large",
        "grader/judge/fingerprint": "f2",
    }


async def test_the_table_tells_errors_from_scores(store: Store) -> None:
    graded = await keep(store, [outcome("a"), outcome("b", {"exact": failed(BROKEN_JUDGE)})])
    first, second = (dict(zip(COLUMNS, cells, strict=True)) for cells in sample_cells(graded))
    assert (first["score"], first["passed"], first["conversation"]) == ("1.0", True, "user: Hi\nassistant: Hello!")
    assert (second["state"], second["score"], second["passed"]) == ("error", None, None)


@pytest.mark.parametrize("tool", ["mlflow", "wandb"])
async def test_a_missing_package_is_named(store: Store, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    monkeypatch.setitem(sys.modules, tool, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'vivavoce\[{tool}\]'"):
        publish(await keep(store, [outcome("a")]), tool)


async def test_an_unknown_tool_is_told_with_those_that_are_known(store: Store) -> None:
    with pytest.raises(UsageError, match="no tool 'mlfow'; did you mean 'mlflow'"):
        publish(await keep(store, [outcome("a")]), "mlfow")
