"""The table of formats in the guide says what the code can do."""

from __future__ import annotations

from pathlib import Path

from vivavoce.exchange.format import all_formats

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "formats.md"


def test_the_table_has_every_format_in_its_order_with_its_ways() -> None:
    table = PAGE.read_text().partition("\n## The table\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    listed = [(name.strip().strip("`"), title.strip(), ways.strip()) for name, title, ways, *_ in lines]
    ways = {(True, True): "in and out", (True, False): "in", (False, True): "out"}
    known = [(one.name, one.title, ways[one.read is not None, one.write is not None]) for one in all_formats()]
    assert listed == known
    assert all(kept.strip() and tested.strip() for *_, kept, tested in lines)
