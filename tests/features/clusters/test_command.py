from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Viva
from vivavoce.testing import LoopbackServer

SUITE = """
name: shop
dataset:
  rows:
    - {id: price, input: "What does it cost?", expect: {contains: EUR}}
    - {id: total, input: "And in total?", expect: {contains: EUR}}
    - {id: order, input: "Where is it?", expect: {regex: track}}
    - {id: hello, input: "Hello", expect: {contains: say}}
target: {kind: function, function: "bot.py:reply"}
graders: {expect: {kind: function, function: expect}}
"""


@pytest.fixture(autouse=True)
def _ran(viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message: str) -> str:\n    return 'I cannot say.'\n")
    Path("suite.yaml").write_text(SUITE)
    done = viva("run", "suite.yaml")
    assert done.returncode in (0, 1), done.stderr


def test_what_failed_is_printed_by_what_it_shares(viva: Viva) -> None:
    done = viva("clusters")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("3 of 4 conversations of run ")
    assert "2 conversations  50.0%, 95%: 15.0% to 85.0%  expectation" in done.stdout
    assert "price#1" in done.stdout
    limited = viva("clusters", "latest", "-n", "1")
    assert "order#1" not in limited.stdout
    assert limited.stderr == "and 1 more cluster; --limit shows more\n"


def test_all_clusters_are_json(viva: Viva) -> None:
    data = json.loads(viva("clusters", "--json", "--grader", "expect").stdout)
    assert (data["conversations"], data["failed"], [cluster["conversations"] for cluster in data["clusters"]]) == (
        4,
        3,
        [2, 1],
    )
    assert [example["sample_id"] for example in data["clusters"][0]["examples"]] == ["price", "total"]


@pytest.mark.parametrize("folder", [".", "new/one"])
def test_a_cluster_becomes_a_suite_that_runs(viva: Viva, folder: str) -> None:
    first = json.loads(viva("clusters", "--json").stdout)["clusters"][0]
    file = Path(folder) / f"cluster-{first['id']}.yaml"
    done = viva("clusters", "latest", "--suite", first["id"], "-o", folder)
    assert done.stdout.splitlines()[-1] == f"next: viva run {file}", done.stderr
    assert viva("validate", str(file)).returncode == 0
    assert viva("run", str(file)).returncode == 1
    data = json.loads(viva("clusters", "--json").stdout)
    assert (data["conversations"], data["failed"]) == (2, 2)
    assert [cluster["id"] for cluster in data["clusters"]] == [first["id"]]
    again = viva("clusters", "latest~1", "--suite", first["id"], "-o", folder)
    assert (again.returncode, "is not overwritten" in again.stderr) == (2, True)


def test_a_judge_names_the_clusters_once_and_changes_none(viva: Viva) -> None:
    plain = json.loads(viva("clusters", "--json").stdout)
    with LoopbackServer(lambda _: {"names": [{"number": 1, "name": "no [b]currency[/b]"}]}) as server:
        judge = f"{server.base_url}#namer"
        done = viva("clusters", "--judge", judge)
        assert done.returncode == 0, done.stderr
        again = viva("clusters", "--judge", judge, "--json")
        assert len(server.requests) == 1
    lines = done.stdout.splitlines()
    assert lines[1].startswith(f"names by {judge} (")
    assert lines[4:6] == ["  no [b]currency[/b] (the model's name)", "  expect: assertion: contains <value>"]
    assert done.stderr == "note: 1 cluster keeps its signature: the model gave no name of 1 to 80 characters\n"
    data = json.loads(again.stdout)
    assert (data["naming"]["named"], data["naming"]["usage"]["cached_calls"]) == (1, 1)
    assert [cluster["name"] for cluster in data["clusters"]] == ["no [b]currency[/b]", None]
    assert [{**cluster, "name": None} for cluster in data["clusters"]] == plain["clusters"]


def test_a_judge_that_fails_leaves_the_signatures(viva: Viva) -> None:
    with LoopbackServer(lambda _: "no names today") as server:
        done = viva("clusters", "--judge", f"{server.base_url}#namer")
    assert done.returncode == 0
    assert done.stdout.count("  expect: assertion:") == 2
    assert done.stderr.startswith("note: 2 clusters keep their signatures: ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["latest", "--suite", "none"], "no cluster 'none'"),
        (["latest", "-o", "new"], "--output is for --suite CLUSTER"),
        (["nothing"], "no run 'nothing'"),
        (["--grader", "goal"], "no grader 'goal'"),
        (["--embedder", "loca"], "embedder 'loca'"),
        (["--judge", "opnai:x"], "opnai"),
        (["--judge", "openai:x", "--suite", "none"], "--suite prints none"),
    ],
)
def test_a_mistake_is_one_line(viva: Viva, arguments: list[str], complaint: str) -> None:
    done = viva("clusters", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
