"""Three-turn conversations against a loopback endpoint of 50 ms, beside a bare loop of the same calls."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT, TURNS, AT_A_TIME, DELAY = 2_000, 3, 64, 0.05
SUITE = """\
name: drive
dataset: d.jsonl
max_concurrent: {limit}
target: {{kind: openai, base_url: "{url}", model_handles: [loopback]}}
graders:
  contains: {{kind: tool, function: contains}}
"""


def serve() -> None:
    """Be the endpoint, in a process of its own, until the input ends."""
    from vivavoce.testing import LoopbackServer

    with LoopbackServer(lambda body: "yes", delay=DELAY) as server:
        print(server.url, flush=True)
        sys.stdin.read()


async def bare_loop(url: str) -> float:
    """Make the same calls with nothing around them; return seconds."""
    import aiohttp

    left = iter(range(COUNT))
    started = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_A_TIME)) as session:

        async def work() -> None:
            for i in left:
                talk: list[dict[str, str]] = []
                for turn in range(TURNS):
                    talk.append({"role": "user", "content": f"{i} {turn}?"})
                    body = json.dumps({"model": "loopback", "messages": talk}).encode()
                    headers = {"Content-Type": "application/json"}
                    async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
                        talk.append(json.loads(await response.read())["choices"][0]["message"])

        await asyncio.gather(*(work() for _ in range(AT_A_TIME)))
    return time.perf_counter() - started


def main() -> None:
    """Measure both and print wall time over the ideal."""
    from vivavoce import run_suite

    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            with Path("d.jsonl").open("w") as out:
                for i in range(COUNT):
                    asked = [f"{i} {turn}?" for turn in range(TURNS)]
                    out.write(json.dumps({"id": str(i), "input": asked, "ground_truth": ["yes"] * TURNS}) + "\n")
            Path("suite.yaml").write_text(SUITE.format(limit=AT_A_TIME, url=url))
            ideal = COUNT * TURNS * DELAY / AT_A_TIME
            bare = asyncio.run(bare_loop(url))
            cpu = time.process_time()
            started = time.perf_counter()
            result = run_suite("suite.yaml")
            ours = time.perf_counter() - started
            cpu = time.process_time() - cpu
        server.kill()
    assert result.summary.grader("contains").mean == 1.0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{COUNT:,} conversations of {TURNS} turns, {AT_A_TIME} at a time, {DELAY * 1000:.0f} ms a reply")
    print(f"wall {ours:.2f} s = {ours / ideal:.2f} × ideal (asked: ≤ 1.15); bare loop {bare / ideal:.2f} × ideal")
    print(f"CPU {cpu / COUNT / TURNS * 1000:.2f} ms a turn; peak memory {memory:.0f} MB")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
