"""The README names what can be installed, is short, and shows small pictures."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_names_every_extra() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra | adds |")[2].partition("\n\n")[0]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(extras)


def test_the_readme_is_short_and_its_pictures_are_small() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    pictures = re.findall(r"^!\[.+\]\((docs/images/\S+)\)$", text, re.MULTILINE)
    assert sorted(pictures) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "images").iterdir())
    for picture in pictures:
        data = (ROOT / picture).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert len(data) <= 150_000
