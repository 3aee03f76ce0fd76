"""100,000 spans, and a receiver that is killed three times while they come; it takes minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.test_watching import send_and_kill

pytestmark = pytest.mark.live


def test_of_many_spans_nothing_is_lost_and_nothing_is_judged_twice(tmp_path: Path) -> None:
    send_and_kill(tmp_path, str(tmp_path / "store.db"), talks=20_000, killed_after=(30, 90, 150))
