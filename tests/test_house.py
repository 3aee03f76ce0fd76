"""The house numbers: what a reader can rely on in every file."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vivavoce
from vivavoce.cli.main import commands
from vivavoce.lazy_names import lazy

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "base", "misc"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[Path, Function]]:
    """Yield every function with its file."""
    for path in SOURCES:
        yield from ((path, node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    return len(function.args.posonlyargs) + len(function.args.args) + len(function.args.kwonlyargs)


def is_command(path: Path, function: Function) -> bool:
    """Return whether the parameters of a function are the options of a command."""
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    return f"{module}:{function.name}" in {command.function for command in commands().values()}


def imports_our_own(function: Function) -> bool:
    for node in ast.walk(function):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.split(".")[0] == "vivavoce" for name in names):
            return True
    return False


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_file_is_named_by_its_subject() -> None:
    assert [name_of(path) for path in SOURCES if path.stem in FORBIDDEN] == []


def test_the_repository_holds_nothing_that_it_ignores_and_no_links() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone: an archive has no list of tracked files")
    ignored = ["git", "-C", str(ROOT), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(ignored, capture_output=True, text=True, check=True).stdout == ""
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-s"], capture_output=True, text=True, check=True)
    assert [line for line in tracked.stdout.splitlines() if line.startswith("120000")] == []


def test_a_function_has_at_most_70_lines_and_9_parameters() -> None:
    too_large = [
        f"{name_of(path)}: {function.name} has {lines(function)} lines and {parameters(function)} parameters"
        for path, function in functions()
        if lines(function) > 70 or (parameters(function) > 9 and not is_command(path, function))
    ]
    assert too_large == []


def test_our_own_modules_are_imported_at_the_top_of_a_file() -> None:
    assert [f"{name_of(path)}: {function.name}" for path, function in functions() if imports_our_own(function)] == []


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_the_package_imports_nothing_from_elsewhere() -> None:
    bare = loaded_by("import importlib, typing")
    more = {name for name in loaded_by("import vivavoce") - bare if not name.startswith("_")}
    assert more <= {"vivavoce", "__future__"} | set(sys.stdlib_module_names)


ENGINE = frozenset({"aiohttp", "jinja2", "numpy", "pydantic", "ruamel", "scipy", "sqlalchemy"})
SERVER = frozenset({"anyio", "fastapi", "sse_starlette", "starlette", "uvicorn"})
SELDOM = frozenset({"aiohttp", "alembic", "dateparser", "jsonschema", "numpy", "phonenumbers", "psycopg", "scipy"})
"""What some suites need, and others do not."""


ABSENT = {
    "--help": ENGINE | SERVER,
    "run --help": SELDOM | SERVER,
    "serve --help": SELDOM | SERVER,
    "view --help": SELDOM | SERVER,
    "run suite.yaml --quiet": SELDOM | SERVER,
}
"""What commands do without; the suite is the one that `viva init` writes."""


@pytest.mark.parametrize("command", ABSENT)
def test_a_command_starts_quickly_because_it_loads_nothing_that_it_does_not_need(command: str) -> None:
    if "suite.yaml" in command:
        subprocess.run([sys.executable, "-m", "vivavoce.cli.main", "init", "."], check=True, capture_output=True)
    loaded = loaded_by(
        f"from vivavoce.cli.main import main\ntry:\n    main({command.split()})\nexcept SystemExit:\n    pass"
    )
    assert loaded & ABSENT[command] == set()


OWN_MODULES = {"--help": 20, "validate suite.yaml": 150, "run suite.yaml --quiet": 200, "show latest": 80}
"""How many modules of ours a command loads at most."""
OWN_ABSENT = tuple(
    f"vivavoce.{name}"
    for name in ("penelope", "server", "features.batches", "features.formats", "features.frameworks", "features.parts")
)
"""Packages and modules of ours that none of them needs."""


def test_a_command_loads_few_modules_of_ours() -> None:
    subprocess.run([sys.executable, "-m", "vivavoce.cli.main", "init", "."], check=True, capture_output=True)
    for command, most in OWN_MODULES.items():
        code = (
            "import sys, json\nfrom vivavoce.cli.main import main\n"
            f"try:\n    main({command.split()})\nexcept SystemExit:\n    pass\n"
            'print("\\n" + json.dumps([name for name in sys.modules if name.split(".")[0] == "vivavoce"]))'
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert len(loaded) <= most, command
        assert [name for name in loaded if name.startswith(OWN_ABSENT)] == [], command


CALLS_PER_CONVERSATION = 770
"""Python calls for one more judged and stored conversation, at most; a bare loop makes 218."""


def test_a_judged_conversation_takes_few_python_calls() -> None:
    done = subprocess.run([sys.executable, ROOT / "bench" / "calls.py"], capture_output=True, text=True, check=True)
    calls = re.search(r"conversation (\d+)", done.stdout)
    assert calls is not None
    assert 218 < int(calls[1]) <= CALLS_PER_CONVERSATION


def test_the_public_names_are_there_sorted_and_few() -> None:
    names = [name for name in vivavoce.__all__ if not name.startswith("_")]
    assert names == sorted(names)
    assert len(names) <= 30
    for name in vivavoce.__all__:
        assert getattr(vivavoce, name) is not None
    assert set(names) <= set(dir(vivavoce))


def test_one_module_opens_sessions_of_aiohttp() -> None:
    assert [name_of(path) for path in SOURCES if "ClientSession(" in path.read_text()] == [
        "src/vivavoce/wire/session.py"
    ]


def test_every_reference_to_a_name_of_ours_leads_somewhere() -> None:
    """A part that is loaded when it is used moves with its module, or fails only then."""
    references = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"vivavoce(\.\w+)+:\w+", node.value)
    }
    assert len(references) > 100
    for reference in sorted(references):
        assert lazy(reference) is not None, reference


def test_modules_are_imported_by_name_in_four_places_only() -> None:
    """Our names, the registry's things, and the optional packages for tables."""
    users = [name_of(path) for path in SOURCES if "import_module(" in path.read_text()]
    assert users == [
        "src/vivavoce/extensions.py",
        "src/vivavoce/files/frames.py",
        "src/vivavoce/lazy_names.py",
        "src/vivavoce/plugins.py",
    ]
