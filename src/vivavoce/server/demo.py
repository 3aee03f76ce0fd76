"""The demo: the suite of the example, offline and without a key, on one of the two releases of its bot."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

from vivavoce.errors import UsageError
from vivavoce.suites.command_line import read_targets
from vivavoce.suites.load import Suite, load_suite

Release = Literal["v1", "v2"]
"""The two releases of the bot, the older first."""

_EXAMPLE = Path("examples", "support_bot")


def demo_folder() -> Path:
    """Return the folder of the example: in the installed package, else in the checkout it is imported from.

    Raises:
        UsageError: neither has it.
    """
    package = Path(str(files("vivavoce")))
    for folder in (package / _EXAMPLE, package.parents[1] / _EXAMPLE):
        if (folder / "suite.yaml").is_file():
            return folder
    raise UsageError("this installation has no example; create a suite with: viva init my-suite")


def demo_suite(release: Release) -> Suite:
    """Return the suite of the example with a release of its bot as the target.

    Raises:
        UsageError: this installation has no example.
    """
    folder = demo_folder()
    return load_suite(folder / "suite.yaml", read_targets([f"{folder / f'bot_{release}.py'}:reply"]))
