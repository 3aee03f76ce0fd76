"""A text that is only the name of a file is told from a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.files.paths import check_text, names_file


@pytest.mark.parametrize(
    "text",
    ["rubric.txt", " rubric.md ", "file://a/b", "FILE://x", "@rubric.txt", "../a/b.jinja2", "C:\\a\\r.TXT", "kept"],
)
def test_the_name_of_a_file_is_no_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    assert names_file(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "Is it polite?", "Rate by rubric.txt", "polite", "a\nrubric.txt", "See {{ submission }}.", "x" * 300, "a\0b"],
)
def test_a_text_is_no_name_of_a_file(text: str, tmp_path: Path) -> None:
    assert not names_file(text, tmp_path)


def test_the_key_for_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"write prompt_path: rubric\.txt$"):
        check_text("file://rubric.txt", tmp_path, "prompt_path")
