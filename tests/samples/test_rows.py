from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.samples.rows import SampleCount, UnusableRows, check_samples, read_samples
from vivavoce.samples.sample import Sample


def dataset(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def build_rows(*ids: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": id_, "input": "x", **fields} for id_ in ids]


def problems_of(path: Path, **options: Any) -> list[tuple[int | None, str]]:
    with pytest.raises(UsageError) as caught:
        check_samples(path, **options)
    assert all(problem.file == path for problem in caught.value.problems)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_samples_come_in_order_with_their_position_as_id(tmp_path: Path) -> None:
    path = dataset(tmp_path, {"input": "a"}, "", {"input": "b", "id": "x"}, {"input": "c"})
    assert [sample.id for sample in read_samples(path)] == ["0", "x", "2"]


def test_the_first_sample_comes_before_the_rest_is_read(tmp_path: Path) -> None:
    samples = read_samples(dataset(tmp_path, {"input": "a"}, "broken"))
    assert next(samples).input == "a"
    with pytest.raises(UsageError, match=r"data\.jsonl:2:1 not valid JSON"):
        next(samples)


def test_tags_choose_and_the_limit_counts_what_is_chosen(tmp_path: Path) -> None:
    rows = [{"input": "x", "tags": tags} for tags in (["a"], ["b"], ["a", "c"], [], ["c"], ["a"])]
    path = dataset(tmp_path, *rows, "broken")
    assert [sample.id for sample in read_samples(path, tags=["a", "c"], limit=3)] == ["0", "2", "4"]
    assert [sample.id for sample in read_samples(path, limit=2)] == ["0", "1"]
    assert list(read_samples(path, limit=0)) == []
    with pytest.raises(UsageError, match=r"data\.jsonl:7"):
        list(read_samples(path, tags=["nowhere"]))


def test_a_rubric_is_found_beside_the_dataset_or_in_a_given_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "r.txt").write_text("here")
    (tmp_path / "sub" / "r.txt").write_text("there")
    path = dataset(tmp_path, {"input": "x", "rubric_path": "r.txt"})
    assert [sample.rubric for sample in read_samples(path)] == ["here"]
    assert [sample.rubric for sample in read_samples(path, base=tmp_path / "sub")] == ["there"]


def test_csv_rows_are_samples_too(tmp_path: Path) -> None:
    path = tmp_path / "data.CSV"
    path.write_text('input,ground_truth,rubric_vars\n"[""a"",""b""]","[""A"",null]","{""k"": ""v""}"\nc,007,\n')
    first, second = read_samples(path)
    assert (first.input, first.ground_truth, first.rubric_vars) == (["a", "b"], ["A", None], {"k": "v"})
    assert (second.input, second.ground_truth, second.rubric_vars) == ("c", "007", {})


def test_a_check_counts_what_there_is(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path = dataset(tmp_path, {"input": ["a", "b"], "ground_truth": ["A", None]}, {"input": "c"}, {"messages": talk})
    assert check_samples(path) == SampleCount(samples=3, turns=4, per_turn=1, recorded=1, shared_rubrics=3)
    assert check_samples(path, limit=1) == SampleCount(samples=1, turns=2, per_turn=1, recorded=0, shared_rubrics=1)


def test_nothing_is_counted_in_an_empty_file(tmp_path: Path) -> None:
    assert check_samples(dataset(tmp_path)) == SampleCount(samples=0, turns=0, per_turn=0, recorded=0)


def test_a_check_reports_every_problem_with_its_line(tmp_path: Path) -> None:
    path = dataset(
        tmp_path,
        {"id": "a", "input": ["x", "y"], "ground_truth": ["z"]},
        {"id": "b", "input": "x"},
        "{broken",
        "",
        {"id": "b", "input": "y"},
        {"id": "c", "inptu": "x"},
    )
    lines, rules = zip(*problems_of(path), strict=True)
    assert lines == (1, 3, 5, 6)
    parts = ["input has 2 turns", "not valid JSON", "id 'b' with trial 0 is already in line 2", "did you mean 'input'"]
    assert all(part in rule for part, rule in zip(parts, rules, strict=True))


def test_trials_of_one_id_are_told_apart(tmp_path: Path) -> None:
    rows = [{"id": "a", "input": "x", "trial": trial} for trial in (0, 1, 2)]
    assert check_samples(dataset(tmp_path, *rows)).samples == 3
    [problem] = problems_of(dataset(tmp_path, *rows, {"id": "a", "input": "x"}))
    assert problem[0] == 4
    assert "id 'a' with trial 0 is already in line 1" in problem[1]


def test_each_repetition_names_the_one_before(tmp_path: Path) -> None:
    problems = problems_of(dataset(tmp_path, *build_rows("a", "b", "a", "a", "b")))
    assert [(line, rule.partition("in line ")[2][0]) for line, rule in problems] == [(3, "1"), (4, "3"), (5, "2")]


def test_an_explicit_id_may_not_repeat_a_counted_one(tmp_path: Path) -> None:
    assert [line for line, _ in problems_of(dataset(tmp_path, {"input": "x"}, {"id": 0, "input": "y"}))] == [2]


def test_the_rows_of_one_line_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(build_rows("a", "b", "a")))
    [(line, rule)] = problems_of(path)
    assert line == 1
    assert "id 'a'" in rule


def test_a_check_names_every_problem(tmp_path: Path) -> None:
    assert len(problems_of(dataset(tmp_path, *["broken"] * 50))) == 50
    assert len(problems_of(dataset(tmp_path, *build_rows(*["a"] * 50), "broken"))) == 50


def test_a_check_lists_so_many_problems_and_counts_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.samples.rows.MAX_PROBLEMS", 3)
    problems = problems_of(dataset(tmp_path, *build_rows("a", "a"), *["broken"] * 4))
    assert [line for line, _ in problems] == [3, 4, 5, None]
    assert problems[-1][1] == "and 2 more mistakes"


def test_duplicates_are_named_among_rows_with_other_mistakes(tmp_path: Path) -> None:
    def refuse(sample: Sample) -> None:
        if sample.input == "wrong":
            raise UsageError("wrong")

    path = dataset(tmp_path, {"id": "x", "input": "wrong"}, *build_rows("a", "b", "a"), {"id": "x", "input": "wrong"})
    with pytest.raises(UnusableRows) as caught:
        check_samples(path, check=refuse)
    assert [problem.line for problem in caught.value.problems] == [1, 4, 5, 5]
    assert caught.value.usable.samples == 3


def test_a_check_looks_at_the_chosen_samples_only(tmp_path: Path) -> None:
    path = dataset(tmp_path, *build_rows("a", "b", tags=["x"]), *build_rows("a", tags=["y"]))
    assert check_samples(path, tags=["x"]).samples == 2
    assert check_samples(path, limit=2).samples == 2
    assert len(problems_of(path)) == 1


def test_fields_are_checked_before_the_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"fields\.idd: a sample has no such field"):
        check_samples(tmp_path / "none.jsonl", fields={"idd": "x"})


def test_rows_for_a_tester_are_counted() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "led", "goal": "g"},
        {"id": "asked", "input": "Hi"},
        {"id": "both", "input": "Hi", "goal": "g"},
        {"id": "recorded", "messages": [{"role": "user", "content": "Hi"}], "goal": "g"},
    ]
    sample_count = check_samples(rows)
    assert (sample_count.samples, sample_count.silent, sample_count.goals, sample_count.recorded) == (4, 1, 3, 1)
