"""The site builds without a warning, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from runpy import run_path
from urllib.parse import unquote, urlsplit

import pytest

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site without a network, as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    build = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-d", str(folder / "doctrees"), "-c", str(DOCS / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *build, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "html"


def text_of(page: Path) -> str:
    """Return the words of a page without its tags."""
    return re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()


def test_the_links_of_the_site_lead_somewhere(site: Path) -> None:
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
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*\"")
    assert [found for path in site.rglob("*.html") for found in loads.findall(path.read_text("utf-8"))] == []


def test_the_front_page_begins_with_tasks_and_its_sidebar_has_every_guide(site: Path) -> None:
    page = Page(site / "index.html")
    guides = {f"guides/{path.stem}.html" for path in (DOCS / "guides").glob("*.md")}
    assert guides - page.links == set()


def test_a_block_with_a_file_name_has_it_as_a_caption(site: Path) -> None:
    page = (site / "guides" / "ci.html").read_text(encoding="utf-8")
    assert '<span class="caption-text">old/bot.py</span>' in page
    assert "```" not in text_of(site / "guides" / "ci.html")


def test_a_public_name_has_all_of_its_docstring(site: Path) -> None:
    page = text_of(site / "reference" / "python" / "vivavoce.html")
    assert "class vivavoce.RunResult(" in page
    assert "0 pass or no gate, 1 a gate failed, 3 inconclusive, 130 interrupted." in page


def test_the_words_of_a_page_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"guides/ci"' in index
    assert '"baselin"' in index


def test_pictures_are_shown_where_they_were_drawn(tmp_path: Path) -> None:
    picture = run_path(str(DOCS / "site" / "markdown_as_site.py"))["picture"]
    assert picture(tmp_path, "run", "a run") == ""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "run-dark.png").touch()
    assert picture(tmp_path, "run", "a run") == "```{image} /pages/run-dark.png\n:alt: a run\n:class: only-dark\n```"
