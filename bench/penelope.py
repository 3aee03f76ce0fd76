"""500 tests of 6 turns by the tester, against a loopback endpoint of 50 ms; and what judging the goal each turn costs.

Tester and judge are scripted: what is measured is the loop around them. The second figure is how much of what the judge
reads was the beginning of what it read before, which providers sell at a tenth of the price.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import drive

TESTS, TURNS, AT_A_TIME = 500, 6, 64
SUITE = """\
name: penelope
dataset: d.jsonl
driver: penelope
max_concurrent: {limit}
target: {{kind: openai, base_url: "{url}", model_handles: [loopback]}}
tester: {{model: "roles.py:tester", judge: "roles.py:judge", max_turns: {turns}, evaluate_every: {every}}}
graders:
  goal: {{kind: tool, function: goal_achieved}}
"""
ROLES = """
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel


def speak(request):
    request_number = len(request.messages)
    return [ToolCall(name="send_message_to_target", args={"message": f"And what about case {request_number}?"})]


def verdict(request):
    return {
        "criteria": [{"outcome": "all is known", "kind": "fact", "evidence": [], "met": False}],
        "breaches": [], "reasoning": "not yet", "confidence": 0.5,
    }


class Forgetful(ScriptedModel):
    async def complete(self, request):
        self.requests.clear()
        return await super().complete(request)


tester, judge = Forgetful(speak, "tester"), Forgetful(verdict, "judge")
"""


class Counting(drive.Endpoint):
    """An endpoint that never says the same twice, for a target that does ends a test."""

    answered = 0

    def answer(self) -> None:
        Counting.answered += 1
        if not self.transport.is_closing():
            self.transport.write(drive.REPLY.replace(b'"yes"', b'"%03d"' % (Counting.answered % 1000)))


async def serve() -> None:
    """Be the endpoint, in a process of its own, until it is ended."""
    server = await asyncio.get_running_loop().create_server(Counting, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def resident() -> float:
    """Return the memory that this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def lead(url: str, every: int) -> tuple[float, float, float]:
    """Hold the tests; return seconds of wall time, of CPU, and how many MB more than at the start were held."""
    from vivavoce import RunOptions, run_suite

    with Path("d.jsonl").open("w") as out:
        for i in range(TESTS):
            out.write(json.dumps({"id": str(i), "goal": f"Learn all about case {i}"}) + "\n")
    Path("roles.py").write_text(ROLES)
    Path("suite.yaml").write_text(SUITE.format(limit=AT_A_TIME, url=url, turns=TURNS, every=every))
    run_suite("suite.yaml", RunOptions(max_samples=2))
    before, cpu, started = resident(), time.process_time(), time.perf_counter()
    result = run_suite("suite.yaml")
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert result.summary.grader("goal").mean == 0.0
    total = sum(len(outcome.attempt.trajectory.turns) for outcome in result.outcomes())
    assert (result.summary.attempts, total) == (TESTS, TESTS * TURNS)
    return wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 * 1.048576 - before


def cacheable(turns: int = 10) -> float:
    """Return the share of the judge's prompts, over a test of real replies, that begins a prompt before it."""
    from vivavoce.messages import ToolCall
    from vivavoce.metrics import GoalAchievementJudge
    from vivavoce.penelope import PenelopeAgent
    from vivavoce.testing import ScriptedModel

    texts, reply = build_recorded(turns)
    judge = ScriptedModel(lambda _: json.loads(json.dumps(VERDICT)))
    tester = ScriptedModel([[ToolCall(name="send_message_to_target", args={"message": text})] for text in texts])
    agent = PenelopeAgent(
        tester, goal_metric=GoalAchievementJudge(judge), max_turns=turns, checks=(), review_tester=False
    )
    replies = iter(reply)
    goal = "The customer's booking is changed as they ask, within the airline's policy, and they know what it costs"
    result = agent.execute_test(lambda message: next(replies), goal=goal)
    assert len(judge.requests) == result.turns_used == turns
    prompts = ["".join(message.text for message in request.messages) for request in judge.requests]
    shared = sum(map(common, prompts, prompts[1:]))
    return shared / sum(map(len, prompts))


def common(a: str, b: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


VERDICT: dict[str, Any] = {
    "criteria": [{"outcome": "changed", "kind": "change", "evidence": [], "met": False}],
    "breaches": [],
    "reasoning": "not yet",
    "confidence": 0.5,
}


def build_recorded(turns: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return what users and assistants say in sentences of the length that real conversations have."""
    messages = [
        f"In turn {i} I would like to know more about the fare of my flight on the {i + 3}th of May."
        for i in range(turns)
    ]
    replies = [
        f"For the flight of the {i + 3}th of May the basic fare holds, so a change costs {50 + i} dollars and the "
        "difference in price. Would you like me to look for another flight on that day, or on the day after?"
        for i in range(turns)
    ]
    return messages, replies


def main() -> None:
    """Measure and print."""
    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            ideal = TESTS * TURNS * drive.DELAY / AT_A_TIME
            drive.COUNT, drive.TURNS = TESTS, TURNS
            bare = asyncio.run(drive.bare_loop(url))
            print(f"{TESTS} tests of {TURNS} turns, {AT_A_TIME} at a time, {drive.DELAY * 1000:.0f} ms a reply")
            print(f"bare loop {bare / ideal:.2f} × ideal")
            for every in (1, TURNS):
                wall, cpu, memory = lead(url, every)
                print(
                    f"goal judged every {every} turns: wall {wall:.2f} s = {wall / ideal:.2f} × ideal (asked: ≤ 1.15); "
                    f"CPU {cpu / TESTS / TURNS * 1000:.2f} ms a turn; {memory:.0f} MB above the start (asked: ≤ 60)"
                )
        server.kill()
    print(f"goal judged in each of 10 turns: {cacheable():.0%} of the judge's prompts is cacheable (asked: ≥ 70 %)")


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
