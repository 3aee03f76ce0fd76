"""Every suite that letta-evals ever had validates without it, or is refused for a reason that the docs list.

`pytest tests/contracts/test_letta_evals_history.py -s -k count` prints how many of each.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from letta_evals_files import HISTORY, complete, distinct_suites, suites
from recordings import needs_recordings
from vivavoce.errors import UsageError
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite

pytestmark = needs_recordings

SANDBOX = "asks for a Modal sandbox"
NO_GRADER = "metric_key: no grader 'accuracy'"
REFUSED = {
    "v0.18.0__letta-code-simple-edit/suite.yaml": SANDBOX,
    "v0.21.0__letta-code-simple-edit/suite.yaml": SANDBOX,
    "v0.23.0__letta-code-simple-edit/suite.yaml": SANDBOX,
    "v0.25.1__letta-code-simple-edit/suite.yaml": SANDBOX,
    "v0.21.0__leaderboard_core-memory-update-agent_suites/core-memory-update.yaml": NO_GRADER,
    "v0.21.0__leaderboard_filesystem-agent/filesystem_cloud.yaml": NO_GRADER,
    "v0.21.0__leaderboard_filesystem-agent/filesystem_code.yaml": NO_GRADER,
}


def reasons(name: str, folder: Path) -> list[str]:
    """Return why a suite is refused."""
    try:
        check_suite(load_suite(complete(name, folder)))
    except UsageError as error:
        return [problem.message for problem in error.problems]
    return []


@pytest.mark.parametrize("name", suites() if HISTORY.is_dir() else [])
def test_a_suite_validates_or_is_refused_for_a_known_reason(name: str, tmp_path: Path) -> None:
    found = reasons(name, tmp_path)
    assert len(found) == (name in REFUSED), found
    assert all(REFUSED[name] in reason for reason in found)


def test_the_docs_count_them_and_list_each_reason() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/guides/letta-evals.md").read_text().split())
    names = distinct_suites()
    refused = Counter(REFUSED[name] for name in names if name in REFUSED)
    valid = len(names) - refused.total()
    print(f"{valid} of {len(names)} validate", *(f"{n} refused: {reason}" for reason, n in refused.items()), sep="\n")
    assert f"{valid} of {len(names)} that we keep for tests validate" in page
    assert f"| a Modal `sandbox` | {refused[SANDBOX]} |" in page
    assert f"| `metric_key: accuracy`, and no grader of that name | {refused[NO_GRADER]} |" in page
