"""Runs, comparisons, reports and tests as tables, in pandas, polars and Arrow."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from vivavoce import EvaluationDataset
from vivavoce.errors import MissingExtra, UsageError
from vivavoce.messages import AIMessage, ToolCall
from vivavoce.metrics import evaluate_conversation
from vivavoce.records.label import Label
from vivavoce.records.trajectory import Turn
from vivavoce.report.compare import compare
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.rows import FlatRow, flat_rows
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store

from .cases import TIMEOUT, capitals, grade, keep, outcome

pandas: Any = pytest.importorskip("pandas", reason="needs the extra [frames]")
pyarrow: Any = pytest.importorskip("pyarrow", reason="needs the extra [frames]")


async def kept(store: Store) -> GradedRun:
    calling = outcome("b", {"exact": grade(0, "no")}, trial=1)
    call = AIMessage(content=None, tool_calls=[ToolCall(name="look_up", args={"order": 7})])
    turn = calling.attempt.trajectory.turns[0]
    talk = calling.attempt.trajectory.model_copy(
        update={"turns": [Turn(index=0, messages=[turn.messages[0], call, *turn.messages[1:]])]}
    )
    calling = calling.model_copy(update={"attempt": calling.attempt.model_copy(update={"trajectory": talk})})
    broken = outcome("c", {}, said=(), failure=TIMEOUT)
    first = outcome("a", {"correct": capitals(), "exact": 1.0}, said=["Paris", "It is Berlin.", "\ud800"])
    return await keep(store, [first, calling, broken])


def result_of(graded: GradedRun) -> RunResult:
    return RunResult(graded.run, graded.grading, graded.summary(), str(graded.store.place))


async def test_samples_have_what_was_said_last_and_a_score_for_each_grader(store: Store) -> None:
    frame: Any = (await kept(store)).to_pandas()
    assert list(frame["sample_id"]) == ["a", "b", "c"]
    assert list(frame["trial"]) == [1, 2, 1]
    assert list(frame["turns"]) == [3, 1, 0]
    assert list(frame["assistant"].fillna("–")) == ["\\ud800", "Hello!", "–"]
    assert frame["score.exact"].mean() == 0.5
    assert frame["passed.exact"].to_list() == [True, False, pandas.NA]
    assert frame["score.correct"].isna().to_list() == [False, True, True]
    assert frame["input_tokens"].to_list() == [9, pandas.NA, pandas.NA]
    assert frame["failure_kind"].fillna("").to_list() == ["", "", "timeout"]


async def test_a_result_has_the_same_tables_as_its_run_in_the_store(store: Store) -> None:
    graded = await kept(store)
    for name in GradedRun.TABLES:
        assert result_of(graded).to_arrow(name).equals(graded.to_arrow(name)), name


async def test_scores_are_the_flat_rows(store: Store) -> None:
    graded = await kept(store)
    found = graded.to_arrow("scores")
    written = [row._asdict() for row in flat_rows(store, graded.run, graded.grading)]
    assert found.to_pylist() == written
    assert found.column_names == list(FlatRow._fields)
    assert str(found.schema.field("turn").type) == "int32"


async def test_turns_have_their_calls_and_their_own_scores(store: Store) -> None:
    frame: Any = (await kept(store)).to_pandas("turns")
    assert list(zip(frame["sample_id"], frame["turn"], strict=True)) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert frame["score.correct"].to_list() == [1.0, 1.0, 0.0, pandas.NA]
    assert frame["passed.correct"].to_list() == [True, True, False, pandas.NA]
    assert frame["tool_calls"].to_list()[-1] == '[{"name":"look_up","arguments":"{\\"order\\": 7}"}]'
    assert frame["seconds"].to_list() == [0.5, 0.5, 0.5, pandas.NA]


async def test_labels_count_from_1_as_every_table_does(store: Store) -> None:
    graded = await kept(store)
    label = Label(sample_id="b", target="bot", trial=1, turn=0, author="ada", verdict="fail", note="no", created_at=5.0)
    store.labels.set(graded.run.id, label)
    [row] = graded.to_arrow("labels").to_pylist()
    assert (row["sample_id"], row["trial"], row["turn"], row["verdict"]) == ("b", 2, 1, "fail")


async def test_a_run_without_any_conversation_has_empty_typed_tables(store: Store) -> None:
    graded = await keep(store, [])
    for name in GradedRun.TABLES:
        assert len(graded.to_pandas(name)) == 0
    assert str(graded.to_arrow("turns").schema.field("turn").type) == "int32"


async def test_polars_has_the_cells_and_types_of_arrow(store: Store) -> None:
    polars: Any = pytest.importorskip("polars", reason="needs the extra [polars]")
    graded = await kept(store)
    for name in GradedRun.TABLES:
        assert graded.to_polars(name).to_dicts() == graded.to_arrow(name).to_pylist(), name
    assert graded.to_polars("turns").schema["score.correct"] == polars.Float64
    dataset = EvaluationDataset.from_list([{"user_input": "a", "retrieved_contexts": ["b"]}, {"user_input": "c"}])
    assert dataset.to_polars().to_dicts() == dataset.to_arrow().to_pylist()


async def test_a_comparison_has_its_graders_and_what_changed(store: Store) -> None:
    before = await keep(store, [outcome("a", {"exact": 1.0}), outcome("b", {"exact": 0.0})], "before")
    after = await keep(store, [outcome("a", {"exact": 0.0}), outcome("b", {"exact": 0.0})], "after")
    found = compare(store, before.grading, after.grading)
    [grader] = found.to_arrow().to_pylist()
    assert (grader["grader"], grader["n"], grader["mean_a"], grader["mean_b"]) == ("exact", 2, 0.5, 0.0)
    [change] = found.to_arrow("changes").to_pylist()
    assert (change["change"], change["sample_a"], change["score_a"], change["score_b"]) == ("worsened", "a", 1.0, 0.0)


def test_a_report_of_metrics_is_a_table_of_them() -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "I cannot help with that."}]
    rows = evaluate_conversation(talk, ["refusal", "repetition"]).to_arrow().to_pylist()
    assert [(row["metric"], row["state"]) for row in rows] == [("refusal", "scored"), ("repetition", "skipped")]
    assert rows[0]["score"] == "1.0"


async def test_an_unknown_table_names_the_known_ones(store: Store) -> None:
    graded = await keep(store, [outcome()])
    with pytest.raises(UsageError, match="no table 'score'; did you mean 'scores'"):
        graded.to_pandas("score")
    with pytest.raises(UsageError, match=r"no table 'x'; known: labels, samples, scores, turns$"):
        graded.to_pandas("x")


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [
        ("to_pandas", "pandas", "frames"),
        ("to_arrow", "pyarrow", "frames"),
        ("to_polars", "polars", "polars"),
    ],
)
async def test_without_the_library_the_error_names_the_extra(
    store: Store, monkeypatch: pytest.MonkeyPatch, method: str, module: str, extra: str
) -> None:
    graded = await keep(store, [outcome()])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'vivavoce\[{extra}\]'"):
        getattr(graded, method)()
