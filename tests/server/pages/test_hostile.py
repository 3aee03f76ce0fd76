"""What strangers wrote is text on a page and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest

from vivavoce import features
from vivavoce.records.label import Remarks
from vivavoce.report.html.rendering import STATIC
from vivavoce.safe_text import safe
from vivavoce.server.pages.links import run_page, sample_page
from vivavoce.store.store import Store

from ..live import get, serving
from .cases import Elements, everywhere, keep
from .hostile import TEXTS

FEATURES = Path(features.__file__ or "").parent
SCRIPTS = frozenset(
    f"/static/{path.name}" for folder in (STATIC, *FEATURES.glob("*/static")) for path in folder.glob("*.js")
)
OURS = frozenset(
    """
    html head meta title link script body header nav main section article aside footer dialog form input label
    select option button details summary a div span p pre h1 h2 h3 ol ul li dl dt dd table caption thead tbody
    tr th td mark sup small em i b q br kbd code svg defs symbol use path circle line polyline text fieldset
    textarea legend figure figcaption datalist
    """.split()  # noqa: SIM905 - names are read as words
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store with a run for each of the texts, which stands in all of its fields."""
    path: Path = tmp_path_factory.mktemp("hostile") / "kept.db"
    with Store.open(str(path)) as store:
        for number, text in enumerate(TEXTS):
            spec = {"description": text, "gate": {"metric_key": text, "value": 0.5}}
            keep(store, [everywhere(text)], f"run-{number}", at=number, suite=text, spec=spec, version=text)
            store.remark(f"run-{number}", Remarks(title=text[:200], notes=text, tags=[text[:60]]), "ida")
        with serving(store) as url:
            yield url


def harmless(page: str) -> Elements:
    """Return a page of which no element, attribute or address was put in by anybody else."""
    read = Elements(page)
    assert {tag for tag, _ in read.tags} <= OURS
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcset", "autofocus")]
    for name in ("href", "src", "action"):
        assert all(value.startswith(("/", "#")) and value[:2] != "//" for value in read.having(name))
    for attributes in (attributes for tag, attributes in read.tags if tag == "script"):
        assert attributes["src"] in SCRIPTS
        assert attributes.keys() <= {"src", "defer", "type"}
    assert "1337" not in read.text
    return read


def test_there_are_many_of_them() -> None:
    assert len(set(TEXTS)) >= 60


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_in_every_field_it_stays_a_text(server: str, number: int) -> None:
    text, run = TEXTS[number], f"run-{number}"
    shown = " ".join(safe(text).split())
    for path in (run_page(run), sample_page(run, text), run_page(run, filter=f'text:"{text}"')):
        answer = get(server + path)
        assert answer.status == 200 or "filter" in path, path  # not every text has a word to look for
        read = harmless(answer.text)
        assert shown in read.text
        if escape(shown) != shown and "&" not in shown:
            assert shown not in answer.text


def test_the_list_of_runs_holds_all_of_them_as_text(server: str) -> None:
    for page in ("/", "/?q=script", f"/?suite={quote(TEXTS[0])}", f"/?q={quote(TEXTS[13])}&after=x"):
        harmless(get(server + page).text)


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_request_brings_stays_a_text(server: str, text: str) -> None:
    spelled = quote(text, safe="")
    for path in (
        f"/runs/{spelled}",
        f"/runs/run-0/samples/{spelled}x?trial=9",
        f"/runs/run-0?filter={spelled}&sort={spelled}",
        f"/runs/run-0?after={spelled}&grading=latest",
        f"/runs/run-0?grading={spelled}",
        f"/runs/run-0/samples/x?trial={spelled}&from={spelled}",
        f"/?q={spelled}&suite={spelled}&status={spelled}",
        f"/?after={spelled}",
    ):
        answer = get(server + path)
        assert answer.status in (200, 404, 422) or answer.headers["location"].startswith(f"{server}/runs/"), path
        if answer.headers.get("content-type", "").startswith("text/html"):
            harmless(answer.text)


@pytest.mark.parametrize("path", ["/static/../pages/run.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fapp.py"])
def test_no_path_leads_out_of_the_folder_of_static_files(server: str, path: str) -> None:
    answer = get(server + path)
    assert answer.status == 404
    assert "import" not in answer.text
