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


ANSWER = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}]}).encode()
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


class Endpoint(asyncio.Protocol):
    """Answers every request after the delay; as little as possible, so that the client is what is measured."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0) if separator else -1
        if length >= 0 and len(body) >= length:
            self.buffer = b""
            asyncio.get_running_loop().call_later(DELAY, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(REPLY)


async def serve() -> None:
    """Be the endpoint, in a process of its own, until it is ended."""
    server = await asyncio.get_running_loop().create_server(Endpoint, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


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
    from vivavoce import RunOptions, run_suite

    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            with Path("d.jsonl").open("w") as out:
                for i in range(COUNT):
                    requests = [f"{i} {turn}?" for turn in range(TURNS)]
                    out.write(json.dumps({"id": str(i), "input": requests, "ground_truth": ["yes"] * TURNS}) + "\n")
            Path("suite.yaml").write_text(SUITE.format(limit=AT_A_TIME, url=url))
            run_suite("suite.yaml", RunOptions(max_samples=1))  # what is loaded once is measured in startup.py
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
    asyncio.run(serve()) if sys.argv[1:] == ["serve"] else main()
