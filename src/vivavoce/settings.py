"""The environment and the defaults, read whenever they are needed and never at import."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WORKSPACE = Path(".vivavoce")
"""The folder, below where the command runs, that holds the store and other files."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in the environment, except addresses and keys of models: those are read where a model is opened."""

    store: str
    """Where records live: a path to an SQLite file."""
    judge: str | None = None
    """The name of the model that judges where none is given; there is no other default, for asking one costs money."""
    tester: str | None = None
    """The name of the model that plays the user, and writes scenarios, where none is given."""
    target: str | None = None
    """What tests in pytest talk to where their configuration names no target."""


def settings() -> Settings:
    """Return the settings in the environment now; `VIVAVOCE_STORE` names another store, `VIVAVOCE_JUDGE` a model.

    `VIVAVOCE_TESTER` names the model that plays the user, `VIVAVOCE_TARGET` what tests in pytest talk to. Nothing is
    kept: a notebook may set them at any time.
    """
    return Settings(
        store=os.environ.get("VIVAVOCE_STORE") or str(WORKSPACE / "vivavoce.db"),
        judge=os.environ.get("VIVAVOCE_JUDGE") or None,
        tester=os.environ.get("VIVAVOCE_TESTER") or None,
        target=os.environ.get("VIVAVOCE_TARGET") or None,
    )


@cache
def user_name() -> str:
    """Return the system's name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "somebody"
