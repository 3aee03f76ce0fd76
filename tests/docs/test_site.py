"""The site builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from runpy import run_path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


class Page(HTMLParser):
    """What a page links to, and the places on it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.add(value)


def build(folder: Path) -> Path:
    """Build the site as `make docs` does, and return its folder."""
    options = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-d", str(folder / "doctrees"), "-c", str(DOCS / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "html"


def broken_links(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    broken: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not aim.is_file() or (anchor and aim in pages and anchor not in pages[aim].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def loaded_from_elsewhere(site: Path) -> list[str]:
    loads = re.compile(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    return [found for path in site.rglob("*.html") for found in loads.findall(path.read_text("utf-8"))]


def words_of(page: Path) -> str:
    """Return the words of a page without its tags."""
    return re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))


def test_the_site_has_every_page_caption_and_docstring_and_no_broken_link(tmp_path: Path) -> None:
    site = build(tmp_path)  # once: it takes most of the time of this file
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()
    assert broken_links(site) == []
    assert loaded_from_elsewhere(site) == []
    in_sidebar = Page(site / "index.html").links
    assert {f"guides/{path.stem}.html" for path in (DOCS / "guides").glob("*.md")} - in_sidebar == set()
    guide = site / "guides" / "ci.html"
    assert '<span class="caption-text">old/bot.py</span>' in guide.read_text(encoding="utf-8")
    assert "```" not in words_of(guide)
    assert "0 pass or no gate, 1 a gate failed" in words_of(site / "reference" / "python" / "vivavoce.html")
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"guides/ci"' in index
    assert '"baselin"' in index


def test_a_picture_stands_where_one_was_drawn(tmp_path: Path) -> None:
    picture = run_path(str(DOCS / "site" / "markdown_as_site.py"))["picture"]
    assert picture(tmp_path, "run", "a run") == ""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "run-dark.png").touch()
    assert picture(tmp_path, "run", "a run") == "```{image} /pages/run-dark.png\n:alt: a run\n:class: only-dark\n```"


def test_a_markdown_file_outside_docs_is_a_download(tmp_path: Path) -> None:
    link = run_path(str(DOCS / "site" / "markdown_as_site.py"))["link"]
    assert link(tmp_path, "guides/ci", "../learn/1.md", "#run") == "](../learn/1.md#run)"
    assert link(tmp_path, "guides/ci", "../../README.md", "#run") == "](<path:../../README.md>)"


def test_the_sidebar_has_the_pages_where_the_index_names_them_last() -> None:
    sidebar = run_path(str(DOCS / "site" / "markdown_as_site.py"))["sidebar"]
    index = "## Tasks\n[a](guides/a.md), [b](learn/b.md#part), [c](../c.md)\n## Learn\n1. [b](learn/b.md)\n"
    lists = list(sidebar(index))
    assert [(":caption: Tasks" in one, "guides/a" in one, "learn/b" in one) for one in lists] == [
        (True, True, False),
        (False, False, True),
    ]
    assert all("../c" not in one for one in lists)
