"""Makes a version of what is unreleased: sets `__version__`, and gives CHANGELOG.md a section for it.

    cut.py VERSION        such as 0.1.0; the date of the section is today's, in UTC

The section is what is under [Unreleased], and then what the files of `changes` say, which are removed. Nothing is
committed. The exit code is 2 where the version is none or older than the last one, and
where nothing is unreleased.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNRELEASED = "\n## [Unreleased]\n"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SET = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
_SECTION_START = re.compile(r"^(## )", re.MULTILINE)
_SECTION = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)


class Refused(Exception):
    """No version can be made so."""


def cut(changelog: str, version: str, date: str, changes: Sequence[str] = ()) -> str:
    """Return a changelog in which what was unreleased, and the `changes`, are the section of a version.

    Raises:
        Refused: the version is none, is not newer than those that have a section, or nothing is unreleased.
    """
    if not _VERSION.fullmatch(version):
        raise Refused(f"'{version}' is no version; write three numbers, such as 0.1.0")
    known = max((_numbers(one) for one in _SECTION.findall(changelog)), default=())
    if _numbers(version) <= known:
        raise Refused(f"{version} is not newer than {'.'.join(map(str, known))}, which has a section already")
    before, found, after = changelog.partition(UNRELEASED)
    if not found:
        raise Refused("CHANGELOG.md has no section [Unreleased]")
    section, heading, older = (
        _SECTION_START.split(after, maxsplit=1) if _SECTION_START.search(after) else (after, "", "")
    )
    text = "\n".join(filter(None, (section.strip("\n"), "\n".join(change.strip("\n") for change in changes))))
    if not text.strip():
        raise Refused("nothing has changed: CHANGELOG.md has nothing under [Unreleased], and changes has no file")
    return f"{before}{UNRELEASED}\n## [{version}] - {date}\n\n{text}\n{chr(10) if older else ''}{heading}{older}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main(words: list[str]) -> int:
    """Cut the version and say what comes next."""
    if len(words) != 1:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    version, changelog, package = words[0], ROOT / "CHANGELOG.md", ROOT / "src" / "vivavoce" / "__init__.py"
    try:
        files = sorted(path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md")
        changes = [path.read_text("utf-8") for path in files]
        text = cut(changelog.read_text("utf-8"), version, f"{datetime.now(UTC):%Y-%m-%d}", changes)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    changelog.write_text(text, "utf-8")
    for path in files:
        path.unlink()
    package.write_text(_SET.sub(f'__version__ = "{version}"', package.read_text("utf-8"), count=1), "utf-8")
    print(f"read the section [{version}] of CHANGELOG.md, commit it, and then: make release")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
