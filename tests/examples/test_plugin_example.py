"""The example of a plugin, installed as its files say: the command line uses all that it adds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
MAX_LINES = 150
SUITE = """\
name: desk
dataset: {path: tickets.jsonl, format: tickets}
driver: replay
graders: {politeness: {kind: metric, metric: politeness}}
"""
LIVE = """\
name: desk
dataset: {rows: [{id: late, input: Where is my parcel?}]}
target: {kind: canned, config: {greeting: Sorry.}}
graders: {politeness: {kind: metric, metric: politeness}}
"""
PAGE = """\
from fastapi.testclient import TestClient
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.store.store import Store
with Store.open(".vivavoce/vivavoce.db") as store:
    app = create_app(store, Access(frozenset({"testserver"}), frozenset()))
    with TestClient(app) as client:
        run = store.run("latest").id
        print(client.get(f"/runs/{run}").text)
        answer = client.get(f"/api/v1/runs/{run}/export?format=tsv")
        print(answer.status_code, answer.headers["content-type"], answer.text)
        print(client.get(f"/api/v1/runs/{run}/export?format=tvs").json()["detail"])
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with the package, as an installer leaves it there."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(EXAMPLE / "support_desk", folder / "support_desk", ignore=ignored)
    known = folder / f"support_desk-{project['version']}.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, names in groups for line in (f"[{group}]", *(f"{n} = {v}" for n, v in names.items()))]
    (known / "entry_points.txt").write_text("\n".join(lines))
    return folder


def call(site: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder that has the installed package in `site`."""
    return subprocess.run(
        command,
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": str(site), "COLUMNS": "160", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def viva(site: Path, *arguments: str, code: int = 0, **environment: str) -> str:
    """Run `viva`, and return what it prints on both streams."""
    done = call(site, str(Path(sys.executable).with_name("viva")), *arguments, **environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_example_is_short() -> None:
    files = sorted(EXAMPLE.rglob("*.py"))
    assert [file.name for file in files] == ["__init__.py", "parts.py", "plugin.py"]
    assert sum(len(file.read_text().splitlines()) for file in files) <= MAX_LINES


def test_the_command_line_uses_what_the_example_adds(site: Path, tmp_path: Path) -> None:
    ticket = {"ticket": "late", "thread": [["customer", "Where is it?"], ["agent", "Thank you, it is on its way."]]}
    (tmp_path / "tickets.jsonl").write_text(json.dumps(ticket) + "\n")
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "live.yaml").write_text(LIVE)

    assert "tickets" in viva(site, "list", "formats")
    assert "canned" in viva(site, "list", "targets")
    assert "The share of replies with a word of courtesy. (exact metric)" in viva(site, "list", "metrics")
    assert "viva show politeness  Print how polite" in viva(site, "show", "--help")

    viva(site, "convert", "tickets.jsonl", "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [message["role"] for message in rows[0]["messages"]] == ["user", "assistant"]
    viva(site, "convert", "rows.jsonl", "back.jsonl", "--to", "tickets")
    assert json.loads((tmp_path / "back.jsonl").read_text()) == ticket

    viva(site, "run", "suite.yaml", "--quiet")
    viva(site, "run", "live.yaml", "--quiet")
    assert viva(site, "politeness") == "politeness: 1.00\n"
    viva(site, "export", "latest", "--output", "scores.tsv")
    assert (tmp_path / "scores.tsv").read_text() == "late\tpoliteness\tscored\t1.0\n"
    assert viva(site, "export", "latest", "--format", "tsv") == "late\tpoliteness\tscored\t1.0\n"

    shown = call(site, sys.executable, "-c", PAGE)
    assert shown.returncode == 0, shown.stderr
    assert "Mean: 1.00" in shown.stdout
    assert "https://desk.example/style" in shown.stdout
    assert "200 text/tab-separated-values; charset=utf-8 late\tpoliteness\tscored\t1.0" in shown.stdout
    assert "did you mean 'tsv'?" in shown.stdout


def test_mistakes_in_its_names_and_options_are_told(site: Path, tmp_path: Path) -> None:
    for text, message in (
        ("{kind: caned}", "no kind 'caned'; did you mean 'canned'?"),
        ("{kind: canned, config: {greting: Hi}}", "no option 'greting'; did you mean 'greeting'?"),
        ("{kind: canned, config: {greeting: [Hi]}}", "option 'greeting': Input should be a valid string"),
        ("{kind: canned, greeting: Hi}", "unknown key"),
        ("{kind: canned, config: {api_key: s3cret}}", "api_key contains a key, which would be stored"),
    ):
        (tmp_path / "live.yaml").write_text(LIVE.replace("{kind: canned, config: {greeting: Sorry.}}", text))
        printed = viva(site, "validate", "live.yaml", code=2)
        assert "live.yaml:3:" in printed
        assert message in printed
        assert "s3cret" not in printed


def test_the_schema_of_a_suite_knows_its_kinds(site: Path) -> None:
    validator: Any = Draft202012Validator(json.loads(viva(site, "schema")))
    suite = {
        "name": "desk",
        "dataset": {"path": "tickets.jsonl", "format": "tickets"},
        "target": {"kind": "canned", "config": {"greeting": "Sorry."}},
        "graders": {"politeness": {"kind": "metric", "metric": "politeness"}},
    }
    assert validator.is_valid(suite)
    assert validator.is_valid({**suite, "target": {"kind": "function", "function": "bot.py:reply"}})
    for wrong in ({"target": {"kind": "caned"}}, {"dataset": {"path": "a", "format": "ticket"}}):
        assert not validator.is_valid({**suite, **wrong})


def test_everything_else_works_without_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "live.yaml").write_text(LIVE)
    viva(site, "run", "live.yaml", "--quiet")
    printed = viva(site, "show", "latest", VIVAVOCE_WITHOUT="support-desk")
    assert "politeness" in printed
    assert "no kind 'canned'" in viva(site, "validate", "live.yaml", code=2, VIVAVOCE_WITHOUT="support-desk")


def test_the_guide_shows_the_plugin_module_as_it_is() -> None:
    guide = (EXAMPLE.parents[1] / "docs" / "guides" / "plugins.md").read_text()
    module = EXAMPLE / "support_desk" / "plugin.py"
    assert f"```python support_desk/plugin.py\n{module.read_text()}```" in guide


def test_its_metric_lacks_nothing(site: Path) -> None:
    code = "from support_desk.parts import Politeness\nfrom vivavoce.testing import check_metric\n"
    done = call(site, sys.executable, "-c", f"{code}print(check_metric(Politeness))")
    assert done.stdout == "[]\n"
