"""Groups of a run, as every reader tells them: terminal, page, Markdown, API and client."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from cli.conftest import Viva
from cli.conftest import viva as viva
from server.live import get, serving
from vivavoce.client import Client
from vivavoce.errors import NotFound, UsageError
from vivavoce.features.groups.report import HEADS, cells, group_conversations
from vivavoce.records.run import Grading
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.markdown import write_markdown
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

BOT = """\
def reply(message: str) -> str:
    return "no" if message == "en1" or (message.startswith("tr") and message != "tr0") else "yes"
"""
SUITE = """\
name: talks
dataset: rows.jsonl
target: {kind: function, function: "bot.py:reply"}
trials: 2
graders: {right: {kind: function, function: exact_match}}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE)
    rows = [
        {
            "id": f"{each}{n}",
            "input": f"{each}{n}",
            "ground_truth": "yes",
            "tags": [each],
            "metadata": {"language": each},
        }
        for each, many in (("en", 12), ("tr", 12), ("<b>", 1))
        for n in range(many)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run_suite("suite.yaml")
    with Store.open(".vivavoce/vivavoce.db") as opened:
        yield opened


@pytest.fixture
def scores(store: Store) -> Grading:
    return store.grading(store.run("latest").id)


def test_every_reader_says_the_same(store: Store, scores: Grading, viva: Viva) -> None:
    result = group_conversations(store, scores, "tag")
    assert result.finding.startswith(
        "1 group differs from the others beyond chance: tr (8.3% pass, others 92.3%: −84.0% ["
    )
    assert [group.number for group in result.groups] == [24, 24, 2]
    printed = viva("groups").stdout
    assert printed.splitlines()[-1] == result.finding
    assert json.loads(viva("groups", "--json").stdout) == result.model_dump(mode="json")
    string_io = StringIO()
    write_markdown(GradedRun(store, store.run("latest"), scores), string_io)
    assert result.finding in string_io.getvalue()
    with serving(store) as url, Client(url) as client:
        assert client.groups("latest", "tag") == result
        page = html.unescape(get(f"{url}/runs/{result.run}?group=tag").text)
    assert result.finding in page
    for head in HEADS:
        assert head.capitalize() in page
        assert head in printed
    for group in result.groups:
        for cell in cells(group):
            assert f">{cell}</td>" in page
            assert cell in printed


def test_a_field_of_metadata_is_offered_where_the_samples_have_it(store: Store, scores: Grading) -> None:
    assert (
        group_conversations(store, scores, "metadata.language").groups
        == group_conversations(store, scores, "tag").groups
    )
    with serving(store) as url:
        assert "group=metadata.language" in get(f"{url}/runs/latest").text
        table = (
            get(f"{url}/runs/latest?group=metadata.language")
            .text.partition('stack groups"')[2]
            .partition("</table>")[0]
        )
        wrong = get(f"{url}/runs/latest?group=metadata.colour")
    assert "&lt;b&gt;" in table
    assert "<b>" not in table
    assert wrong.status == 422
    assert "no sample has metadata.colour" in wrong.text


@pytest.mark.parametrize(
    ("by", "which", "sentence"),
    [
        ("target", "", "there is no other group to compare with"),
        ("tag", "sample:en1", "there is no other group to compare with"),
        ("tag", "-sample:*", "no conversation is in a group"),
        ("trial", "", "no group differs from the others beyond chance"),
        ("tag", "-sample:en* -sample:tr1 -sample:tr2 -sample:tr3 -sample:tr4 -sample:tr5", "too few to compare: "),
    ],
)
def test_what_cannot_be_told_is_said(store: Store, scores: Grading, by: str, which: str, sentence: str) -> None:
    assert group_conversations(store, scores, by, which).finding.startswith(sentence)


def test_an_interval_that_excludes_0_among_many_groups_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 of 4 fail in one group and none in 4 others: certain alone, and not among the five."""
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(
        'def reply(message: str) -> str:\n    return "no" if message in ("a0", "a1") else "yes"\n'
    )
    Path("suite.yaml").write_text(SUITE.replace("trials: 2\n", ""))
    rows = [
        {"id": f"{tag}{n}", "input": f"{tag}{n}", "ground_truth": "yes", "tags": [tag]}
        for tag in "abcde"
        for n in range(4)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run_suite("suite.yaml")
    with Store.open(".vivavoce/vivavoce.db") as opened:
        result = group_conversations(opened, opened.grading(opened.run("latest").id), "tag")
    rest = next(group.rest for group in result.groups if group.name == "a")
    assert rest is not None
    assert rest.high < 0
    assert not rest.differs
    alone = "each interval is for its group alone, among 5 compared"
    assert result.finding == f"no group differs from the others beyond chance; {alone}"


def test_wrong_names_are_refused_by_every_reader(store: Store, viva: Viva) -> None:
    wrong = viva("groups", "--by", "metadata.lang")
    assert (wrong.returncode, "did you mean 'metadata.language'?" in wrong.stderr) == (2, True)
    assert viva("groups", "--grader", "rihgt").returncode == 2
    with serving(store) as url, Client(url) as client:
        with pytest.raises(NotFound):
            client.groups("latest", grader="rihgt")
        with pytest.raises(UsageError, match="no field 'colour'"):
            client.groups("latest", "colour")
