"""Every page says what is true now: its code runs, its suites load, its commands and links exist.

- A block `python` runs, after the ones before it on the same page, in an empty folder.
- A block `console` is run by a shell, in the same kind of folder. A block `bash` is only read.
- A block `text` right below one of these is what it prints; a line `…` in it stands for any lines, and the ids of runs
  and the seconds are free.
- A block with a file name, as in `yaml suite.yaml`, is written to that file before anything of the page runs.
- The port of a `--port` is another one when the page runs, one that is free, wherever it stands on the page.
- What a page leaves running ends with it.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel

from forked import program
from vivavoce.cli.main import load_command, own_name, parts_of
from vivavoce.grading.extractors import extractors
from vivavoce.grading.functions import option_names
from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.rules.event import Event
from vivavoce.samples.sample import Sample
from vivavoce.suites import spec
from vivavoce.suites.load import load_suite

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
BIN = Path(sys.executable).parent

FENCE = re.compile(r"^```(\S*)[ ]?(\S*)$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(viva .*)$|`(viva [^`\n]+)`", re.MULTILINE)
SUITE = re.compile(r"(?:#.*\n)*name:")
PORT = re.compile(r"--port (\d+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
BETWEEN = "\x1e"
ANY_LINES = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line in the page, its language, the file it stands for, its text, and its end."""

    line: int
    language: str
    file: str
    text: str
    end: int


@cache
def text_of(page: Path) -> str:
    """Return the text of a page, with free ports."""
    text = page.read_text(encoding="utf-8")
    for port in sorted(set(PORT.findall(text))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            text = re.sub(rf"\b{port}\b", str(free.getsockname()[1]), text)
    return text


def blocks(page: Path) -> list[Block]:
    text = text_of(page)
    return [
        Block(text.count("\n", 0, found.start()) + 2, found[1], found[2], found[3], found.end())
        for found in FENCE.finditer(text)
    ]


def expected(page: Path) -> dict[Block, str]:
    """Return what blocks print, by block, for those that have it right below them."""
    text = text_of(page)
    return {
        above: below.text
        for above, below in pairwise(blocks(page))
        if below.language == "text" and not below.file and text[above.end :].lstrip().startswith("```text")
    }


def name_of(page: object) -> str:
    return str(page.relative_to(ROOT)) if isinstance(page, Path) else str(page)


@pytest.fixture(autouse=True)
def plugins_of_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that calls pytest finds it with our plugin, and without those that this project happens to use."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "vivavoce.testing.plugin")


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(block.language == language for block in blocks(page))]


def runnable(language: str) -> list[Path]:
    """Return the pages with such blocks; the other files of the project's root are only read."""
    return [page for page in pages_with(language) if page.is_relative_to(DOCS) or page.name == "README.md"]


def write_files(page: Path, folder: Path) -> None:
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            assert not path.exists(), f"{page}:{block.line} writes {block.file} a second time"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


Shell = Callable[[list[str], Path], subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Iterator[Shell]:
    """Run a command in a folder; whatever it leaves behind in its process group ends with the test."""
    groups: list[int] = []
    path = os.pathsep.join([str(program("viva").parent), str(BIN), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "160", "PYTHONWARNINGS": "error"}

    def started(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            groups.append(process.pid)
            try:
                printed, _ = process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, printed)

    yield started
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def told(text: str) -> str:
    """Return the lines of a text without what differs from run to run, as the time of replies does."""
    text = re.sub(r"-[0-9a-f]{6}\b", "-000000", text)
    text = re.sub(r"\d+\.\d\d s\b", "0.00 s", text)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("replies:", "replies of "))]
    return "".join(f"{' '.join(line.split())}\n" for line in lines)


def check_told(page: Path, block: Block, printed: str, wanted: str | None) -> None:
    if wanted is None:
        return
    lines = [".*" if line == ANY_LINES else re.escape(line) + "\n" for line in told(wanted).splitlines()]
    said = told(printed)
    if not re.fullmatch("".join(lines), said, re.DOTALL):
        pytest.fail(f"{page}:{block.line} prints\n{said}\nand not\n{told(wanted)}", pytrace=False)


@pytest.mark.parametrize("page", runnable("python"), ids=name_of)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path, run: Shell) -> None:
    write_files(page, tmp_path)
    code = [block for block in blocks(page) if block.language == "python"]
    script = [""] * (page.read_text(encoding="utf-8").count("\n") + 2)
    for block in code:
        lines = [*block.text.splitlines(), f"print({BETWEEN!r}, end='', flush=True)"]
        script[block.line - 1 : block.line - 1 + len(lines)] = lines
    (tmp_path / "_page.py").write_text("\n".join(script), encoding="utf-8")
    done = run([str(program("python")), "_page.py"], tmp_path)
    assert done.returncode == 0, f"{page}\n{done.stdout}"
    for block, printed in zip(code, done.stdout.split(BETWEEN), strict=False):
        check_told(page, block, printed, expected(page).get(block))


@pytest.mark.parametrize("page", runnable("console"), ids=name_of)
def test_the_commands_of_a_page_print_what_the_page_says(page: Path, tmp_path: Path, run: Shell) -> None:
    write_files(page, tmp_path)
    for block in blocks(page):
        if block.language == "console":
            done = run(["bash", "-c", block.text], tmp_path)
            assert not done.stdout.startswith("Traceback"), f"{page}:{block.line}\n{done.stdout}"
            check_told(page, block, done.stdout, expected(page).get(block))


@pytest.mark.parametrize("page", pages_with("yaml"), ids=name_of)
def test_the_suites_of_a_page_can_be_read(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language == "yaml" and SUITE.match(block.text):
            path = tmp_path / f"line_{block.line}.yaml"
            path.write_text(block.text, encoding="utf-8")
            assert load_suite(path).problems == ()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    for found in COMMAND.finditer(page.read_text(encoding="utf-8")):
        words = shlex.split(re.split("[|>;&]", found[1] or found[2])[0])
        if words[1].startswith("-") or words[1].isupper():
            continue
        name = own_name(words[1])
        assert name is not None, f"{page}: {' '.join(words)}"
        name = words[2] if words[2:] and words[2] in parts_of(name) else name
        known = {name for parameter in load_command(name).params for name in parameter.opts} | {"--help", "--help-all"}
        given = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
        assert given <= known, f"{page}: {' '.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page} links to {link}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page has on GitHub."""
    heads = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_the_generated_pages_are_up_to_date(run: Shell) -> None:
    done = run([sys.executable, str(DOCS / "generate.py"), "--check"], ROOT)
    assert done.returncode == 0, done.stdout


def models() -> list[type[BaseModel]]:
    found = [thing for thing in vars(spec).values() if isinstance(thing, type) and issubclass(thing, BaseModel)]
    return [model for model in (*found, Event) if model.model_fields]


def test_every_key_of_a_suite_is_explained() -> None:
    pages = [DOCS / "guides" / f"{name}.md" for name in ("suites", "targets", "tester")]
    pages += [DOCS / "reference" / f"{name}.md" for name in ("suite-keys", "tests")]
    page = "".join(path.read_text() for path in pages)
    keys = {key for model in models() for key in model.model_fields}
    assert {key for key in keys if f"`{key}`" not in page and f"{key}:" not in page} == set()


def test_every_field_of_a_sample_is_explained() -> None:
    page = (DOCS / "reference" / "dataset-fields.md").read_text()
    assert {field for field in Sample.model_fields if f"`{field}`" not in page} == set()


def test_every_extractor_and_grader_is_explained_with_its_options() -> None:
    kinds = [(name, metrics.get(name)) for name in metrics.names()]
    functions = [(name, kind.function) for name, kind in kinds if issubclass(kind, FunctionGrader)]
    known = [*((name, extractors.get(name)) for name in extractors.names()), *functions]
    page = (DOCS / "reference" / "graders.md").read_text() + (DOCS / "guides" / "tool-calls.md").read_text()
    names = {name for one, function in known for name in (one, *option_names(function))}
    assert {name for name in names if f"`{name}" not in page} == set()
