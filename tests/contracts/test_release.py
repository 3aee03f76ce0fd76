"""What `make release` would refuse, and the facts that it reads from one place."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import vivavoce

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
assert _spec is not None
assert _spec.loader is not None
release: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)


def package(name: str, *licences: str) -> dict[str, Any]:
    return {"name": name, "version": "1", "licenses": [{"license": {"name": licence}} for licence in licences]}


@pytest.mark.parametrize(
    "licence",
    ["GNU General Public License v3 (GPLv3)", "AGPL-3.0-only", "GPL-2.0-or-later"],
)
def test_a_package_whose_licence_binds_those_who_use_it_is_refused(licence: str) -> None:
    with pytest.raises(release.Refused, match=re.escape(f"strict: {licence}")):
        release.licences({"components": [package("strict", licence)]})


def test_a_package_without_a_licence_is_refused() -> None:
    with pytest.raises(release.Refused, match="bare: no licence"):
        release.licences({"components": [package("bare")]})


def test_each_package_has_its_version_and_licence() -> None:
    lesser = "GNU Lesser General Public License v2 or later (LGPLv2+)"
    bill = {
        "components": [
            package("Zeta", "License :: OSI Approved :: MIT License"),
            package("alpha", lesser),
            {"name": "either", "version": "2", "licenses": [{"expression": "GPL-3.0-only OR MIT"}]},
        ]
    }
    assert release.licences(bill) == [
        ("alpha", "1", lesser),
        ("either", "2", "GPL-3.0-only OR MIT"),
        ("Zeta", "1", "MIT License"),
    ]


def test_a_wheel_without_a_tracked_file_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "vivavoce.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("vivavoce/__init__.py", "")
        archive.writestr("vivavoce/secret.env", "")
    with pytest.raises(release.Refused, match=r"missing: .*'vivavoce/py\.typed'.*\nnot tracked: .*secret\.env"):
        release.check_files(wheel)


def test_the_version_is_written_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/vivavoce/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", vivavoce.__version__)
