"""What every test may rely on."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from left_out import leave_out
from vivavoce.models.modes import CAPABILITIES

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side, each on one core
hypothesis_settings.register_profile("shared machine", deadline=None, derandomize=True)
hypothesis_settings.load_profile("shared machine")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage while all is loaded, never among that, which stays, and not very often later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        leave_out()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.fixture(autouse=True)
def _own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Run every test in an empty folder, without the keys of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if (
            name.startswith("VIVAVOCE_")
            or name.endswith(("_API_KEY", "_BASE_URL", "_ENDPOINT"))
            or name == "OLLAMA_HOST"
        ):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _unknown_endpoints() -> None:  # pyright: ignore[reportUnusedFunction]
    """Begin every test without what endpoints of other tests, perhaps on the same port, have said of themselves."""
    CAPABILITIES.forget()


REGISTRIES = (
    ("vivavoce.metrics.factory", "metrics"),
    ("vivavoce.grading.extractors", "extractors"),
    ("vivavoce.grading.rewards", "reward_composers"),
    ("vivavoce.penelope.strategies.factory", "strategies"),
)


@pytest.fixture(autouse=True)
def _no_name_of_a_users_file_stays() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Take back the names that files of a test register: other tests of this process ask for every name."""
    before = {where: _names_of(*where) for where in REGISTRIES}
    yield
    for where in REGISTRIES:
        for name in _names_of(*where) - before[where]:
            del vars(sys.modules[where[0]])[where[1]]._added[name]


def _names_of(module: str, registry: str) -> set[str]:
    return set(vars(sys.modules[module])[registry]._added) if module in sys.modules else set()
