from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.export import file_names


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai/gpt-4o:free", "openai-gpt-4o-free"),
        ("Prüfling 2", "Prüfling-2"),
        ("../../etc/passwd", "-..-etc-passwd"),
        ("..", "target"),
        ("", "target"),
        (".hidden", "hidden"),
        ("a\x00b\ud800", "a-b-"),
    ],
)
def test_a_target_keeps_its_name_but_for_what_a_file_may_not_have(target: str, name: str) -> None:
    assert file_names([target]) == {target: name}


@pytest.mark.parametrize("pair", [("a/b", "a-b"), ("GPT", "gpt"), ("x" * 60, "x" * 61), ("..", "target")])
def test_names_that_would_be_the_same_each_get_a_mark_that_does_not_depend_on_the_order(pair: tuple[str, str]) -> None:
    names = file_names(pair)
    assert len({name.casefold() for name in names.values()}) == 2
    assert all("~" in name for name in names.values())
    assert file_names(reversed(pair)) == names


def test_a_name_that_is_taken_gets_a_mark() -> None:
    assert file_names(["suite.json"], taken=["suite.json"])["suite.json"].startswith("suite.json~")


@given(
    st.lists(st.text(st.characters(exclude_categories=[])) | st.sampled_from(["a/b", "a-b", "A-B", "a:b"]), unique=True)
)
def test_no_two_targets_share_a_file_and_none_leaves_the_folder(targets: list[str]) -> None:
    names = file_names(targets, taken=["suite.json"])
    assert list(names) == targets
    assert len({name.casefold() for name in [*names.values(), "suite.json"]}) == len(targets) + 1
    for name in names.values():
        assert Path("/out", f"{name}.jsonl").parent == Path("/out")
        assert not name.startswith(".")
        assert len(f"{name}.jsonl".encode()) <= 255
