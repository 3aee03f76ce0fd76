"""A judge over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vivavoce.testing import LoopbackServer

from .talks import judge


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(judge) as server:
        yield server


@pytest.fixture
def model(server: LoopbackServer) -> str:
    return f"{server.base_url}#judge"
