"""Every suite that letta-evals ever had validates without it, or is refused for a reason that the docs list.

`pytest tests/contracts/test_letta_evals_history.py -s -k count` prints how many of each.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from letta_evals_files import HISTORY, complete, distinct_suites, suites
from recordings import needs_recordings
from vivavoce import run_suite
from vivavoce.errors import UsageError
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite
from vivavoce.testing import LoopbackServer

pytestmark = needs_recordings

SANDBOX = "asks for a Modal sandbox"
NO_GRADER = "metric_key: no grader 'accuracy'"
CANNOT_FAIL = "so this gate cannot fail"
REFUSED = {
    "v0.19.1__multi-grader-gate/suite.logical-and.yaml": CANNOT_FAIL,
    "v0.19.1__multi-grader-gate/suite.weighted-average.yaml": CANNOT_FAIL,
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
    assert bool(found) == (name in REFUSED), found
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


FRUITS = """\
def reply(messages):
    said = messages[-1]["content"]
    fruit = next((word.strip(".!") for word in said.split() if word.strip(".!") in KNOWN), "nothing")
    arguments = json.dumps({"label": "user_fruit_preferences", "new_str": f"likes {fruit}"})
    call = {"id": "c", "type": "function", "function": {"name": "memory_insert", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "assistant", "content": "Noted."},
    ]
"""


def test_the_files_of_a_suite_grade_what_another_target_did(tmp_path: Path) -> None:
    suite = complete("v0.10.0__custom-tool-grader-and-extractor/suite.yaml", tmp_path)
    rows = [json.loads(line) for line in (suite.parent / "dataset.jsonl").read_text().splitlines() if line]
    known = [row["ground_truth"].lower() for row in rows]
    Path("bot.py").write_text(f"import json\n\nKNOWN = {known!r}\n\n\n{FRUITS}")
    result = run_suite(suite, target=f"{Path('bot.py').resolve()}:reply")
    found = result.summary.grader("preference_check")
    assert (found.scored, found.errors, found.mean) == (len(rows), 0, 1.0)


def test_the_reward_of_a_suite_is_composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = complete("v0.21.0__reward-composition/suite.weighted-average.yaml", tmp_path)
    Path("bot.py").write_text("def reply(message):\n    return '( o.o )'\n")
    verdict: dict[str, Any] = {"reasoning": "r", "evidence": [], "score": 0.5, "confidence": 1}
    with LoopbackServer(lambda _: verdict) as judge:
        monkeypatch.setenv("OPENAI_BASE_URL", judge.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-judge")
        result = run_suite(suite, target=f"{Path('bot.py').resolve()}:reply")
    assert result.summary.grader("reward").mean == pytest.approx(0.7 * 0.5 + 0.3)


def test_a_suite_in_a_sandbox_runs_against_another_target(tmp_path: Path) -> None:
    suite = complete("v0.25.1__letta-code-simple-edit/suite.yaml", tmp_path)
    text = suite.read_text()
    suite.write_text("\n".join(line for line in text.splitlines() if "setup_script" not in line))
    Path("bot.py").write_text("def reply(message):\n    return 'bot.py'\n")
    result = run_suite(suite, target=f"{Path('bot.py').resolve()}:reply")
    assert result.summary.grader("bug_fix_check").mean == 1.0
