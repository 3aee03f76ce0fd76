"""Decisions are numbered without gaps, have one form, and stand in the index under one subject."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
PARAGRAPH = re.compile(r"^\*\*([A-Z][^*]*)\.\*\*", re.MULTILINE)


def test_they_are_numbered_without_gaps() -> None:
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_form_of_the_template(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert re.findall(r"^#.*", text, re.MULTILINE) == [text.splitlines()[0]], "one heading"
    begin, *rest = PARAGRAPH.findall(text)
    if begin == "Problem":
        begin, *rest = rest
    assert begin == "Decision"
    assert not {"Problem", "Decision"} & {*rest}
    assert "Rejected" not in rest[:-1], "it comes last"


def test_the_index_lists_each_page_once_with_its_title() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", index, re.MULTILINE)
    titles = [(page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# "), page.name) for page in PAGES]
    assert sorted(listed) == sorted(titles)
