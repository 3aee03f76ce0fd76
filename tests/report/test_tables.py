"""Flat rows, one for each score of a grading, and their files: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce import EvaluationDataset
from vivavoce.errors import MissingExtra, UsageError
from vivavoce.files.frames import ROWS_AT_ONCE
from vivavoce.messages import AIMessage, ToolCall
from vivavoce.metrics import evaluate_conversation
from vivavoce.records.label import Label
from vivavoce.records.score import Score, failed, skipped
from vivavoce.records.trajectory import Turn
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.tables import FORMULA_STARTS, FlatRow, cell, flat_rows, write_csv, write_parquet_file
from vivavoce.run.summary import RunResult
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, TIMEOUT, capitals, grade, keep, outcome


async def test_a_conversation_comes_before_its_turns_and_the_reward_last(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals(), "exact": 1.0}, reward=Score(value=0.5))])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [(row.grader, row.turn, row.score) for row in rows] == [
        ("correctness", None, 2 / 3),
        ("correctness", 1, 1.0),
        ("correctness", 2, 1.0),
        ("correctness", 3, 0.0),
        ("exact", None, 1.0),
        ("reward", None, 0.5),
    ]
    assert (rows[3].submission, rows[3].ground_truth, rows[3].rationale) == ("Madrid", "Rome", "turn 2")


async def test_a_row_says_what_its_score_is_about(store: Store) -> None:
    graded = await keep(store, [outcome("a", trial=2, target="v2", scenario="abc")])
    (row,) = flat_rows(store, graded.run, graded.grading)
    assert (row.run, row.grading, row.sample_id, row.target, row.trial) == ("run-1", "run-1-g1", "a", "v2", 3)
    assert (row.scenario, row.fingerprint, row.seconds, row.state) == ("abc", "f1", 1.5, "scored")


async def test_a_turn_has_the_seconds_of_that_turn_and_none_when_it_was_not_held(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals()}, texts=["a", "b"])])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [row.seconds for row in rows] == [1.5, 0.5, 0.5, None]


async def test_an_error_and_a_skip_have_no_score_and_say_why(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"judge": failed(BROKEN_JUDGE), "exact": skipped("no ground truth")})])
    error, skip = flat_rows(store, graded.run, graded.grading)
    assert (error.state, error.score) == ("error", None)
    assert (error.blame, error.failure_kind, error.failure_message) == ("judge", "format", "no verdict")
    assert (skip.state, skip.score, skip.rationale, skip.blame) == ("skipped", None, "no ground truth", None)


async def test_a_ground_truth_that_is_not_text_is_json(store: Store) -> None:
    truths = ["text", {"total": 3}, ["é"], None]
    grades = {f"g{i}": grade(1, ground_truth=truth) for i, truth in enumerate(truths)}
    graded = await keep(store, [outcome(grades=grades)])
    rows = flat_rows(store, graded.run, graded.grading)
    assert [row.ground_truth for row in rows] == ["text", '{"total":3}', '["é"]', None]


async def table(store: Store, rationale: str) -> tuple[list[dict[str, str]], list[FlatRow]]:
    graded = await keep(store, [outcome(grades={"exact": grade(0.5, rationale)})])
    out = io.StringIO(newline="")
    write_csv(graded, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    return rows, list(flat_rows(store, graded.run, graded.grading))


async def test_the_columns_are_those_of_the_flat_rows_and_nothing_is_an_empty_cell(store: Store) -> None:
    rows, flat = await table(store, "fine")
    assert list(rows[0]) == list(FlatRow._fields)
    assert rows[0] == {name: "" if value is None else str(value) for name, value in flat[0]._asdict().items()}


@pytest.mark.parametrize("text", ['say "no", please', "one\ntwo\r\nthree\rfour", "Grüße 🎓", "a'b", "x\x00y"])
async def test_any_text_reads_back_as_it_was(store: Store, text: str) -> None:
    rows, _ = await table(store, text)
    assert [row["rationale"] for row in rows] == [text]


@pytest.mark.parametrize("start", FORMULA_STARTS)
async def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(store: Store, start: str) -> None:
    rows, _ = await table(store, f'{start}HYPERLINK("http://evil","click")')
    assert rows[0]["rationale"] == f'\'{start}HYPERLINK("http://evil","click")'


@given(st.text(st.characters(exclude_categories=[])))
def test_no_cell_starts_like_a_formula_and_every_cell_is_utf_8(text: str) -> None:
    safe = cell(text)
    assert not safe.startswith(FORMULA_STARTS)
    assert safe.encode().decode().removeprefix("'") == encodable(text).removeprefix("'")


parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs the extra [frames]")


async def test_the_table_holds_the_flat_rows_with_their_types(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals(), "exact": grade(1, "=1+1\n'x")})])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    table = parquet.read_table(tmp_path / "scores.parquet")
    assert [FlatRow(**row) for row in table.to_pylist()] == list(flat_rows(store, graded.run, graded.grading))
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["score"], types["turn"], types["trial"], types["rationale"]) == ("double", "int32", "int32", "string")
    assert types["passed"] == "bool"


async def test_half_a_character_is_written_as_its_escape(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, [outcome(grades={"exact": grade(1, ground_truth="\ud800")})])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    assert parquet.read_table(tmp_path / "scores.parquet")["ground_truth"].to_pylist() == ["\\ud800"]


async def test_rows_are_written_some_at_a_time(store: Store, tmp_path: Path) -> None:
    grades = {f"g{i}": 1.0 for i in range(64)}
    count = ROWS_AT_ONCE // 64 + 1
    graded = await keep(store, [outcome(str(i), grades) for i in range(count)])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    metadata = parquet.ParquetFile(tmp_path / "scores.parquet").metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (64 * count, 2)


pandas: Any = pytest.importorskip("pandas", reason="needs the extra [frames]")
pyarrow: Any = pytest.importorskip("pyarrow", reason="needs the extra [frames]")


async def keep_two_runs(store: Store) -> GradedRun:
    calling = outcome("b", {"exact": grade(0, "no")}, trial=1)
    call = AIMessage(content=None, tool_calls=[ToolCall(name="look_up", args={"order": 7})])
    turn = calling.attempt.trajectory.turns[0]
    talk = calling.attempt.trajectory.model_copy(
        update={"turns": [Turn(index=0, messages=[turn.messages[0], call, *turn.messages[1:]])]}
    )
    calling = calling.model_copy(update={"attempt": calling.attempt.model_copy(update={"trajectory": talk})})
    broken = outcome("c", {}, texts=(), failure=TIMEOUT)
    first = outcome("a", {"correct": capitals(), "exact": 1.0}, texts=["Paris", "It is Berlin.", "\ud800"])
    return await keep(store, [first, calling, broken])


def result_of(graded: GradedRun) -> RunResult:
    return RunResult(graded.run, graded.grading, graded.summary(), str(graded.store.place))


async def test_samples_have_what_was_said_last_and_a_score_for_each_grader(store: Store) -> None:
    frame: Any = (await keep_two_runs(store)).to_pandas()
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
    graded = await keep_two_runs(store)
    for name in GradedRun.TABLES:
        assert result_of(graded).to_arrow(name).equals(graded.to_arrow(name)), name


async def test_scores_are_the_flat_rows(store: Store) -> None:
    graded = await keep_two_runs(store)
    arrow_table = graded.to_arrow("scores")
    rows = [row._asdict() for row in flat_rows(store, graded.run, graded.grading)]
    assert arrow_table.to_pylist() == rows
    assert arrow_table.column_names == list(FlatRow._fields)
    assert str(arrow_table.schema.field("turn").type) == "int32"


async def test_turns_have_their_calls_and_their_own_scores(store: Store) -> None:
    frame: Any = (await keep_two_runs(store)).to_pandas("turns")
    assert list(zip(frame["sample_id"], frame["turn"], strict=True)) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert frame["score.correct"].to_list() == [1.0, 1.0, 0.0, pandas.NA]
    assert frame["passed.correct"].to_list() == [True, True, False, pandas.NA]
    assert frame["tool_calls"].to_list()[-1] == '[{"name":"look_up","arguments":"{\\"order\\": 7}"}]'
    assert frame["seconds"].to_list() == [0.5, 0.5, 0.5, pandas.NA]


async def test_labels_count_from_1_as_every_table_does(store: Store) -> None:
    graded = await keep_two_runs(store)
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
    graded = await keep_two_runs(store)
    for name in GradedRun.TABLES:
        assert graded.to_polars(name).to_dicts() == graded.to_arrow(name).to_pylist(), name
    assert graded.to_polars("turns").schema["score.correct"] == polars.Float64
    dataset = EvaluationDataset.from_list([{"user_input": "a", "retrieved_contexts": ["b"]}, {"user_input": "c"}])
    assert dataset.to_polars().to_dicts() == dataset.to_arrow().to_pylist()


async def test_a_comparison_has_its_graders_and_what_changed(store: Store) -> None:
    before = await keep(store, [outcome("a", {"exact": 1.0}), outcome("b", {"exact": 0.0})], "before")
    after = await keep(store, [outcome("a", {"exact": 0.0}), outcome("b", {"exact": 0.0})], "after")
    comparison = compare(store, before.grading, after.grading)
    [grader] = comparison.to_arrow().to_pylist()
    assert (grader["grader"], grader["n"], grader["mean_a"], grader["mean_b"]) == ("exact", 2, 0.5, 0.0)
    [change] = comparison.to_arrow("changes").to_pylist()
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
