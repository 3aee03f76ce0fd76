"""`tools/names.py` reports bad names and phrases, and its allowances only go down."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.runner import ROOT

GOOD = '"""Load runs."""\n\n\ndef load_run(path: str) -> str:\n    """Return the text of a run."""\n    return path\n'
TOOL = ("names.py", "sentences.py", "plain_words.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / ".gitignore").write_text("tools\n__pycache__\n")
    for name in TOOL:
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    write(tmp_path, "src/vivavoce/runs.py", GOOD)
    return tmp_path


def write(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)


def names(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "tools" / "names.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def allow(project: Path, text: str) -> Path:
    path = project / "tools" / "plain_words_allowed.txt"
    path.write_text(text)
    return path


def test_good_names_and_phrases_pass(project: Path) -> None:
    write(project, "docs/page.md", "The report lists the runs next to their scores. There is no limit.\n")
    result = names(project)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("found = 1", "found"),
        ("_told: int = 1", "_told"),
        ("MOST = 1", "MOST"),
        ("PATIENCE = 1", "PATIENCE"),
        ("def f(asked): ...", "asked"),
        ("def _graded(): ...", "_graded"),
        ("class Asked: ...", "Asked"),
        ("[one for one in ()]", "one"),
    ],
)
def test_a_bad_name_fails_the_check_and_is_reported_with_its_line(project: Path, line: str, name: str) -> None:
    write(project, "src/vivavoce/runs.py", f"{GOOD}\n\n{line}\n")
    result = names(project)
    assert result.returncode == 1
    assert f"src/vivavoce/runs.py:9: name '{name}'; write " in result.stdout


@pytest.mark.parametrize(
    "line", ["most = 1", "def seed(): ...", "is_found = 1", "class C:\n    @property\n    def failed(self): ..."]
)
def test_a_good_name_that_resembles_a_bad_name_passes(project: Path, line: str) -> None:
    write(project, "src/vivavoce/runs.py", f"{GOOD}\n\n{line}\n")
    assert names(project).returncode == 0


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        (
            "src/vivavoce/runs.py",
            'MESSAGE = f"{1} runs, of "\\\n    "which 2 failed"\n',
            "runs.py:1: phrase 'of which'",
        ),
        ("src/vivavoce/runs.py", "A = 1\n# grade the run\n# anew\n", "runs.py:3: phrase 'anew'"),
        ("src/vivavoce/runs.py", '"""Loads.\n\n    Shown beside\n    the run."""\n', "runs.py:3: phrase 'beside'"),
        ("src/vivavoce/run.html", "<p>The user is\n  told</p>\n", "run.html:1: phrase 'is told'"),
        ("docs/page.md", "# Page\n\nIt goes on\nwith the run.\n", "page.md:3: phrase 'goes on with'"),
        ("docs/page.md", "This is no list.\n", "page.md:1: phrase 'is no'"),
    ],
)
def test_a_bad_phrase_fails_the_check_also_across_lines(project: Path, path: str, text: str, place: str) -> None:
    write(project, path, text)
    result = names(project)
    assert result.returncode == 1
    assert place in result.stdout


def test_prompts_are_not_checked(project: Path) -> None:
    write(project, "src/vivavoce/judge.txt", "A file of which the judge is told.\n")
    write(project, "src/vivavoce/judge.jinja", "A file of which the judge is told.\n")
    assert names(project).returncode == 0


def test_a_folder_may_have_its_allowance_and_no_more(project: Path) -> None:
    allow(project, "1 1 src\n")
    write(project, "src/vivavoce/runs.py", "# graded anew\nfound = 1\n")
    assert names(project).returncode == 0
    write(project, "src/vivavoce/runs.py", "# graded anew\nfound = told = 1\n")
    result = names(project)
    assert result.returncode == 1
    assert "src: 2 names of tools/plain_words.txt, at most 1 allowed" in result.stdout
    assert "anew" not in result.stdout


def test_shrink_lowers_allowances_and_never_raises_them(project: Path) -> None:
    allowed = allow(project, "0 1 docs\n3 0 missing\n5 5 src\n")
    write(project, "src/vivavoce/runs.py", "# graded anew\nfound = told = 1\n")
    write(project, "docs/page.md", "So many, of which one is none.\n")
    assert names(project, "--shrink").returncode == 0
    assert allowed.read_text().splitlines()[1:] == ["0 1 docs", "2 1 src"]
    assert names(project).returncode == 1


def test_the_allowances_of_this_repository_are_as_low_as_they_can_be_read(project: Path) -> None:
    lines = (ROOT / "tools" / "plain_words_allowed.txt").read_text().splitlines()[1:]
    paths = [line.split(maxsplit=2)[2] for line in lines]
    assert paths == sorted(set(paths))


SOURCES = {
    "messages": ('raise ValueError(f"run {name} does not exist")\n', "run {name} does not exist"),
    "help": ('X = Option(help="Grade the runs again.")\n', "Grade the runs again."),
    "docstrings": ('def load_run():\n    """Return a run."""\n', "Return a run."),
}


@pytest.mark.parametrize("surface", SOURCES)
def test_the_sentences_of_a_surface_are_listed_with_their_places(project: Path, surface: str) -> None:
    source, text = SOURCES[surface]
    write(project, "src/vivavoce/__init__.py", "from vivavoce.runs import load_run as load_run\n")
    write(project, "src/vivavoce/runs.py", source)
    assert names(project, "--sentences", surface).stdout == f"src/vivavoce/runs.py:1: {text}\n"


def test_the_texts_and_titles_of_pages_are_listed_without_their_markup(project: Path) -> None:
    page = '<h1>Compare\n {{ name }} runs</h1>\n{% if x %}\n<a title="Open the run">all of it</a>\n{% endif %}\n'
    write(project, "src/vivavoce/page.html", page)
    lines = names(project, "--sentences", "pages").stdout.replace("src/vivavoce/page.html:", "")
    assert lines.splitlines() == ["1: Compare {} runs", "4: Open the run", "4: all of it"]


def test_the_texts_of_reports_are_listed_without_docstrings(project: Path) -> None:
    write(project, "src/vivavoce/report/text.py", 'def title():\n    """Return a title."""\n    return "Two runs"\n')
    assert names(project, "--sentences", "reports").stdout == "src/vivavoce/report/text.py:3: Two runs\n"


def test_wrong_usage_prints_the_usage(project: Path) -> None:
    result = names(project, "--sentences", "riddles")
    assert result.returncode == 2
    assert "names.py --shrink" in result.stderr
