from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.forked_viva import forked_viva


@pytest.fixture(scope="session")
def quick_viva(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a `viva` that needs no time to load."""
    with forked_viva(tmp_path_factory.mktemp("viva")) as programs:
        yield programs
