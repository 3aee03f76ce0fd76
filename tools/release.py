"""Builds what would be published, into `dist/`, and checks it as somebody who installs it would meet it.

    release.py [PYTHON …]      the interpreters to install it for; without any, each python3.N that is found

- the sdist, the wheel that is built from it, and what PyPI would refuse in them
- the wheel holds each file of the package that is tracked, and nothing else
- in a clean environment of each interpreter: pip installs the wheel, each module is imported or names its extra, and
  `viva init` and `viva run` find the mistake of the bot that they make
- `vivavoce-VERSION.cdx.json`, a CycloneDX list of what was installed with it, and `licences.md`, with their licences

The exit code is 1 where something of this is not so. Where CHANGELOG.md has no section for the version or something is
not committed, all is checked, and the exit code is 1 with what is left to do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import vivavoce

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / ".venv-release" / "bin"
DIST = ROOT / "dist"
OLDEST, NEWEST = 11, 15
BINDING = re.compile(r"\bA?GPL|(?<!Lesser )General Public License")
"""Licences under which a program that imports the package would have to be published as well."""
EVERY_MODULE = """
import importlib, pkgutil, vivavoce
from vivavoce.errors import MissingExtra
for module in pkgutil.walk_packages(vivavoce.__path__, "vivavoce.", onerror=lambda name: None):
    if "migrations" not in module.name:
        try:
            importlib.import_module(module.name)
        except MissingExtra:
            pass
        except ModuleNotFoundError as error:
            if error.name != "pytest" or not module.name.startswith("vivavoce.testing."):
                raise
"""
"""Imports each module: those of an extra say which, and only the plugin for pytest needs pytest."""


class Refused(Exception):
    """What was built cannot be published."""


EXAMPLE = "examples/support_bot"
"""The example that the wheel has, for the demo of the first page."""


def run(*command: object, cwd: Path = ROOT, code: int = 0) -> str:
    """Run a command and return what it prints; another exit code is refused."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode != code:
        words = " ".join(str(word) for word in command[:6])
        raise Refused(f"{words} ended with {done.returncode}, not {code}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def interpreters() -> list[str]:
    """Return the interpreters that are found and start."""
    names = [f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    return [name for name in names if shutil.which(name) and _starts(name)]


def _starts(python: str) -> bool:
    return subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0


def build(version: str) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(TOOLS / "python", "-m", "build", "--outdir", DIST, ROOT)
    sdist, wheel = DIST / f"vivavoce-{version}.tar.gz", DIST / f"vivavoce-{version}-py3-none-any.whl"
    run(TOOLS / "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def check_files(wheel: Path) -> int:
    """Compare the files of the wheel with the tracked ones, and return how many there are."""
    tracked = {name.removeprefix("src/") for name in run("git", "ls-files", "src/vivavoce").splitlines()}
    tracked |= {f"vivavoce/{name}" for name in run("git", "ls-files", EXAMPLE).splitlines()}
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not re.match(r"vivavoce-[^/]*\.dist-info/", name)}
    if names != tracked:
        raise Refused(f"missing: {sorted(tracked - names)}\nnot tracked: {sorted(names - tracked)}")
    return len(names)


def install(wheel: Path, python: str, folder: Path) -> Path:
    """Install the wheel for an interpreter, use it, and return the interpreter of the new environment."""
    run(python, "-m", "venv", folder)
    own, viva = folder / "bin" / "python", folder / "bin" / "viva"
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    run(own, "-m", "pip", "check")
    run(own, "-W", "error::SyntaxWarning", "-c", EVERY_MODULE, cwd=folder)
    if (said := run(viva, "--version", cwd=folder).strip()) != vivavoce.__version__:
        raise Refused(f"viva --version says {said}")
    run(viva, "init", "shop", cwd=folder)
    run(viva, "run", "shop/suite.yaml", cwd=folder, code=1)
    return own


def licences(bill: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, version and licence of each package of a CycloneDX list.

    Raises:
        Refused: a package has no licence, or one that its users would have to adopt.
    """
    rows = {package["name"]: (package.get("version", ""), _names(package)) for package in bill["components"]}
    refused = [f"{name}: {' or '.join(names) or 'no licence'}" for name, (_, names) in rows.items() if _bind(names)]
    if refused:
        raise Refused("licences: " + "; ".join(refused))
    return [(name, version, " or ".join(names)) for name, (version, names) in sorted(rows.items(), key=_by_name)]


def _by_name(row: tuple[str, object]) -> str:
    return row[0].lower()


def _names(package: dict[str, Any]) -> list[str]:
    """Return the licences of a package, of which its users choose one."""
    given = [
        one.get("expression") or one["license"].get("id") or one["license"]["name"]
        for one in package.get("licenses", ())
    ]
    return list(dict.fromkeys(name.removeprefix("License :: OSI Approved :: ") for name in given))


def _bind(names: list[str]) -> bool:
    return all(BINDING.search(choice) for name in names for choice in name.split(" OR "))


def write_bill(own: Path, version: str) -> int:
    """Write what is installed beside the package, and its licences."""
    path = DIST / f"vivavoce-{version}.cdx.json"
    project = ("--pyproject", ROOT / "pyproject.toml", "--output-reproducible")
    run(TOOLS / "cyclonedx-py", "environment", own, *project, "--output-file", path)
    rows = licences(json.loads(path.read_text(encoding="utf-8")))
    lines = [f"| {name} | {number} | {licence} |" for name, number, licence in rows]
    head = ["| package | version | licence |", "|---|---|---|"]
    (DIST / "licences.md").write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return len(rows)


def left_to_do(version: str) -> list[str]:
    """Return what stands between what was checked and a release."""
    left: list[str] = []
    if f"\n## [{version}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        left.append(f"CHANGELOG.md has no section [{version}]: .venv/bin/python tools/cut.py {version}")
    if changed := run("git", "status", "--porcelain").splitlines():
        left.append(f"not committed: {', '.join(line[3:] for line in changed[:5])}{' …' * (len(changed) > 5)}")
    return left


def main(pythons: list[str]) -> int:
    """Build and check, and say each step."""
    version, pythons = vivavoce.__version__, pythons or interpreters()
    try:
        _, wheel = build(version)
        print(f"{wheel.name}: {check_files(wheel)} files, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for number, python in enumerate(pythons):
                own = install(wheel, python, Path(folder) / str(number))
                print(f"installed and run: {run(own, '--version').strip()}", flush=True)
                if number == len(pythons) - 1:
                    print(f"{write_bill(own, version)} packages with their licences", flush=True)
        left = left_to_do(version)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    if left:
        print("all of this is right, and left to do before a release is:", *left, sep="\n- ", file=sys.stderr)
        return 1
    print(f"ready: git tag v{version}, and .venv-release/bin/twine upload dist/*.whl dist/*.tar.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
