"""The table of formats in the reference says what the code can do, and the guide names each of them."""

from __future__ import annotations

import re
from pathlib import Path

from vivavoce.conversations.format import all_formats

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "reference" / "formats.md"


def test_the_table_has_every_format_in_its_order_with_its_ways() -> None:
    table = PAGE.read_text().partition("\n## The table\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    rows_listed = [(name.strip().strip("`"), title.strip(), ways.strip()) for name, title, ways, *_ in lines]
    ways = {(True, True): "in and out", (True, False): "in", (False, True): "out"}
    known = [
        (format_.name, format_.title, ways[format_.read is not None, format_.write is not None])
        for format_ in all_formats()
    ]
    assert rows_listed == known
    assert all(extra.strip() and tested.strip() for *_, extra, tested in lines)


def test_the_guide_names_each_format_under_its_ways() -> None:
    page = (DOCS / "guides" / "formats.md").read_text()
    rows = re.findall(r"^\| (in and out|in|out) \| (.*) \|$", page, re.MULTILINE)
    table = {ways: set(re.findall("`([^`]+)`", names)) for ways, names in rows}
    ways = {"in and out": (True, True), "in": (True, False), "out": (False, True)}
    known = {
        name: {
            format_.name for format_ in all_formats() if (format_.read is not None, format_.write is not None) == way
        }
        for name, way in ways.items()
    }
    assert table == known
