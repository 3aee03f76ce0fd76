"""The suite beside this file, as a test: `python -m pytest` fails where the suite does, and says where."""

from __future__ import annotations

from pathlib import Path

from vivavoce import run_suite

SUITE = Path(__file__).with_name("suite.yaml")


def test_the_suite_passes() -> None:
    """Run the suite; its gate decides."""
    result = run_suite(SUITE)
    wrong = [
        f"{outcome.attempt.key.sample_id}, {name}: {score.reason}"
        for outcome in result.outcomes()
        for name, score in outcome.scores.items()
        if score.passed is False or score.state == "error"
    ]
    assert result.exit_code == 0, "\n".join([str(result), *wrong])
