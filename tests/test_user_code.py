"""The source of a user's Python: a file and what it imports from its own folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from vivavoce.metrics import TurnCountMetric
from vivavoce.plugins import load_object
from vivavoce.user_code import files_of, hash_code, source_of, text_of


def write_files(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "mine.py"


@pytest.mark.parametrize(
    "imports",
    [
        "import helper",
        "import os, helper as h",
        "from helper import score",
        "def f():\n    import helper",
        "from between import anything",
        "import deep.down",
        "from deep import down",
        "import deep.beside",
    ],
)
def test_what_a_file_imports_from_its_folder_belongs_to_it(imports: str, tmp_path: Path) -> None:
    mine = write_files(
        tmp_path,
        mine=f"{imports}\n",
        between="import helper\nimport mine\n",
        helper="score = 1\n",
        other="score = 2\n",
        **{"deep/down": "import helper\n", "deep/beside": "from . import down\n"},
    )
    assert tmp_path / "helper.py" in files_of(mine)
    assert tmp_path / "other.py" not in files_of(mine)
    before = (text_of(mine), hash_code(mine))
    (tmp_path / "helper.py").write_text("score = 0\n")
    assert text_of(mine) != before[0]
    assert hash_code(mine) != before[1]


def test_a_package_and_what_runs_when_it_is_imported_belong_to_it(tmp_path: Path) -> None:
    mine = write_files(tmp_path, mine="from pkg.sub import thing\n", **{"pkg/__init__": "", "pkg/sub/thing": "x = 1\n"})
    names = [str(file.relative_to(tmp_path)) for file in files_of(mine)]
    assert names == ["mine.py", "pkg/__init__.py", "pkg/sub/thing.py"]


def test_what_is_installed_does_not(tmp_path: Path) -> None:
    mine = write_files(tmp_path, mine="import json, numpy, pytest\nfrom vivavoce import grader\n")
    assert files_of(mine) == (mine,)


def test_a_module_found_in_a_folder_below_belongs_to_it(tmp_path: Path) -> None:
    mine = write_files(
        tmp_path,
        mine="import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent / 'lib'))\n"
        "import found_in_lib\ndef f(): ...\n",
        **{"lib/found_in_lib": "x = 1\n"},
    )
    load_object("mine.py:f", tmp_path)
    assert tmp_path / "lib" / "found_in_lib.py" in files_of(mine)


def test_a_grader_in_a_folder_of_the_suite_may_import_from_the_suite(tmp_path: Path) -> None:
    write_files(tmp_path, rules="x = 1\n", **{"graders/mine": "def f():\n    import rules\n    return rules.x\n"})
    load_object("graders/mine.py:f", tmp_path)
    assert tmp_path / "rules.py" in files_of(tmp_path / "graders" / "mine.py")


@pytest.mark.parametrize("name", ["function", "Kind", "instance", "part"])
def test_the_source_of_a_thing_is_that_of_its_module_and_of_what_it_imports(name: str, tmp_path: Path) -> None:
    text = (
        "import helper_of_things\nfrom functools import partial\n"
        "def function(): ...\nclass Kind: ...\ninstance = Kind()\npart = partial(function, 3)\n"
    )
    write_files(tmp_path, mine=text, helper_of_things="SCORE = 1\n")
    source = source_of(load_object(f"mine.py:{name}", tmp_path))
    assert "class Kind" in source
    assert "SCORE = 1" in source


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    functions: list[Any] = []
    for name in ("a", "b"):
        write_files(tmp_path / name, mine=f"def function(): return '{name}'\n")
        functions.append(load_object(f"{name}/mine.py:function", tmp_path))
    assert ["return 'a'" in source_of(functions[0]), "return 'b'" in source_of(functions[1])] == [True, True]


def test_what_is_ours_has_a_version_instead() -> None:
    assert source_of(TurnCountMetric) == source_of(TurnCountMetric()) == ""


def test_what_has_no_file_is_itself() -> None:
    scope: dict[str, Any] = {"__name__": "nowhere"}
    exec("def made(): ...", scope)
    assert source_of(len) == repr(len)
    assert source_of(scope["made"]) == repr(scope["made"])
    assert source_of(partial(len, "x")).startswith(repr(len))
