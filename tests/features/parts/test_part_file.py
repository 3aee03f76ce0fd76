"""The file of a part gives back what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from report.cases import outcome
from vivavoce.errors import UsageError
from vivavoce.features.parts.part_file import About, RowProblem, read_part, write_part
from vivavoce.files.places import Folder
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import BREACH, TESTER_ERROR, Evidence, Failure, Finding, Score
from vivavoce.store.runs.rows import Encoder, Entry

ENCODER = Encoder("run-1", "run-1-g1", {"a": "f1", "b": "f2"})


def entry(made: Outcome) -> Entry:
    return ENCODER.outcome(made)


def written(tmp_path: Path, entries: list[Entry], graders: list[str]) -> Folder:
    path = tmp_path / "p.parquet"
    problems = [RowProblem(row=7, message="half a surrogate \\ud800")]
    assert write_part(path, About(file="a.jsonl", problems=problems), entries, graders) == len(entries)
    return Folder(str(tmp_path))


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    spoiled = Failure(blame="tester", kind=TESTER_ERROR, message="it broke off")
    made = [
        entry(outcome("one", {"a": 0.5, "b": Score(state="skipped", reason="no goal")}, texts=("Paris 🗼", "Rome"))),
        entry(outcome("two", {"a": Score(state="error", reason="it broke off", failure=spoiled), "b": 1.0})),
    ]
    folder = written(tmp_path, made, ["a", "b"])
    with read_part(folder, "p") as part:
        assert list(part.entries()) == made
        assert part.conversations == 2
        assert part.about.problems[0].row == 7
        found = list(part.scores())
    assert [(key, failure) for key, failure, _ in found] == [
        (AttemptKey("one", "bot", 0), None),
        (AttemptKey("two", "bot", 0), None),
    ]
    states = [[(row.name, row.state, row.value, row.tester_error) for row in rows] for _, _, rows in found]
    assert states == [
        [("a", "scored", 0.5, False), ("b", "skipped", None, False)],
        [("a", "error", None, True), ("b", "scored", 1.0, False)],
    ]


def test_the_scores_of_a_part_say_which_breaches_they_rest_on(tmp_path: Path) -> None:
    lie = Finding(
        kind=BREACH,
        what="it says 24.90",
        verdict="false_statement",
        state="partial",
        evidence=(Evidence(text="24.90", verified=True),),
    )
    invented = lie.model_copy(update={"evidence": (Evidence(text="25.90"),)})
    old = lie.model_copy(update={"verdict": "broken"})
    made = [
        entry(outcome("one", {"a": Score(value=1.0, findings=(lie, invented)), "b": Score(value=1.0, findings=(old,))}))
    ]
    with read_part(written(tmp_path, made, ["a", "b"]), "p") as part:
        ((_, _, rows),) = part.scores()
    kinds = {row.name: row.breaches for row in rows}
    assert kinds == {"a": ("false_statement",), "b": ("false_statement", "broken_rule")}


def test_a_part_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    made = entry(outcome("one", {"a": 0.5}))
    folder = written(tmp_path, [made], ["a"])
    table = cast("Any", pq).read_table(tmp_path / "p.parquet")
    (record,) = table.column("record").to_pylist()
    attempt, *rest = json.loads(record)
    assert attempt[-2:] == [None, None]
    column = table.schema.get_field_index("record")
    older = table.set_column(column, "record", [[json.dumps([attempt[:-2], *rest])]])
    cast("Any", pq).write_table(older, tmp_path / "p.parquet")
    with read_part(folder, "p") as part:
        assert list(part.entries()) == [made]


def test_other_programs_read_scores_by_their_names(tmp_path: Path) -> None:
    written(tmp_path, [entry(outcome("one", {"a": 0.5}))], ["a"])
    table = cast("Any", pq.read_table(tmp_path / "p.parquet"))  # pyright: ignore
    (row,) = cast("list[dict[str, Any]]", table.to_pylist())
    assert (row["sample_id"], row["target"], row["trial"]) == ("one", "bot", 0)
    assert row["scores"]["a"]["value"] == 0.5
    assert json.loads(row["record"])[0][1] == "one"


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_text("broken", "utf-8")
    with pytest.raises(UsageError, match=r"p\.parquet: cannot be read"), read_part(Folder(str(tmp_path)), "p"):
        pass
    pq.write_table(pq.read_table(_plain(tmp_path)), tmp_path / "q.parquet")  # pyright: ignore
    with pytest.raises(UsageError, match=r"q\.parquet: is not the file of"), read_part(Folder(str(tmp_path)), "q"):
        pass


def _plain(folder: Path) -> Path:
    import pyarrow as pa

    pq.write_table(pa.Table.from_pylist([{"x": 1}]), folder / "plain.parquet")  # pyright: ignore
    return folder / "plain.parquet"
