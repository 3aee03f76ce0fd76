"""A repeated test asks tester and judge again: nothing is taken from the cached replies of an earlier try."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer

from .conftest import Viva

NO_FAULT: dict[str, Any] = {"faults": [], "obstacle": "none", "obstacle_evidence": [], "reasoning": "", "confidence": 1}
MADE_UP: dict[str, Any] = {"kind": "invented_fact", "what": "another code", "evidence": ["HELLO5"], "decisive": True}
WORKS, HAS_CODE = "It works", "The user has the code AUTUMN20."


class Endpoint:
    """A tester that errs the first `errors` times, and its judge."""

    def __init__(self, errors: int) -> None:
        self.errors, self.tester_calls = errors, 0

    def __call__(self, body: dict[str, Any]) -> Any:
        text = body["messages"][-1]["content"] or ""
        if body.get("tools"):
            self.tester_calls += 1
            code = "HELLO5" if self.tester_calls <= self.errors else "AUTUMN20"
            return [ToolCall(name="send_message_to_target", args={"message": f"My code is {code}.", "reasoning": "r"})]
        if "judge the user" in text:
            return NO_FAULT | {"faults": [MADE_UP]}
        met = WORKS in text
        criterion = {"outcome": "applied", "kind": "change", "evidence": [WORKS] if met else [], "met": met}
        return {"criteria": [criterion], "breaches": [], "reasoning": "r", "confidence": 1.0}


def suite_in(folder: Path, base_url: str) -> Path:
    (folder / "bot.py").write_text(
        f"def reply(message):\n    return '{WORKS}.' if 'AUTUMN20' in message else 'That code is not valid.'\n"
    )
    model = f"{base_url}#m"
    suite = {
        "name": "codes",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "a", "goal": "The code is applied", "scenario": HAS_CODE}]},
        "target": {"kind": "function", "function": "bot.py:reply"},
        "tester": {"model": model, "judge": model, "max_turns": 1},
        "graders": {"passed": {"kind": "function", "function": "target_passed"}},
    }
    (folder / "suite.yaml").write_text(json.dumps(suite))
    return folder / "suite.yaml"


def test_the_second_try_of_a_spoiled_test_asks_the_tester_again(viva: Viva, tmp_path: Path) -> None:
    endpoint = Endpoint(errors=1)
    with LoopbackServer(endpoint) as server:
        done = viva("run", str(suite_in(tmp_path, server.base_url)))
    assert (done.returncode, endpoint.tester_calls) == (0, 2), done.stdout + done.stderr


def test_retrying_errors_asks_again_where_the_tester_was_to_blame(viva: Viva, tmp_path: Path) -> None:
    endpoint = Endpoint(errors=2)
    with LoopbackServer(endpoint) as server:
        first = viva("run", str(suite_in(tmp_path, server.base_url)))
        assert (first.returncode, endpoint.tester_calls) == (3, 2), first.stdout + first.stderr
        again = viva("run", "--resume", "latest", "--errors")
    assert (again.returncode, endpoint.tester_calls) == (0, 3), again.stdout + again.stderr


def test_an_equal_run_is_still_answered_from_the_cache(viva: Viva, tmp_path: Path) -> None:
    endpoint = Endpoint(errors=1)
    with LoopbackServer(endpoint) as server:
        suite = str(suite_in(tmp_path, server.base_url))
        codes = [viva("run", suite).returncode for _ in range(2)]
    assert (codes, endpoint.tester_calls) == ([0, 0], 2)
