"""The suite beside this file, as a test: `python -m pytest` fails where the suite does, and says where."""

from __future__ import annotations

from pathlib import Path

from vivavoce import run_suite
from vivavoce.testing import viva_assert


def test_the_suite_passes() -> None:
    """Run the suite; its assertions, rules, and gate decide."""
    viva_assert(run_suite(Path(__file__).with_name("suite.yaml")))
