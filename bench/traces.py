"""Spans that `viva watch` takes a second, beside a server that reads the same requests and drops them.

Counted are seconds of the processor, less those of the start, so that a busy machine gives the same figures; nothing is
judged meanwhile.
"""

from __future__ import annotations

import http.client
import json
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from features.watch.traffic import Json, export, in_protobuf, turn

TURNS, TALKS, REQUESTS = 5, 100, 60
OFTEN = 20
"""How often the bare server gets each request: it needs too little for one."""
REQUEST_COUNT = 2000
VIVA = str(Path(sys.executable).with_name("viva"))
BARE = """
import sys, uvicorn
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", lifespan="off")
"""


def exports() -> list[Json]:
    talks = [[f"{request}-{number}" for number in range(TALKS)] for request in range(REQUESTS)]
    return [export(*(turn(talk, number) for talk in some for number in range(TURNS))) for some in talks]


def seconds(command: Sequence[str], port: int, bodies: Sequence[bytes], kind: str) -> float:
    """Return how long the processor worked for a server that was sent these requests."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for body in bodies:
            connection.request("POST", "/v1/traces", body, {"content-type": kind})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
        process.send_signal(signal.SIGINT)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


payloads = exports()
spans = REQUESTS * TALKS * TURNS
for name, bodies, kind in (
    ("JSON", [json.dumps(payload).encode() for payload in payloads], "application/json"),
    ("protobuf", [in_protobuf(payload) for payload in payloads], "application/x-protobuf"),
):
    with tempfile.TemporaryDirectory() as folder:
        port, store = free_port(), str(Path(folder) / "s.db")
        ours = [VIVA, "watch-traces", "--port", str(port), "--metrics", "refusal", "--idle", "1h", "--store", store]
        bare = [sys.executable, "-c", BARE, str(port)]
        took = seconds(ours, port, bodies, kind) - seconds(ours, port, [], kind)
        alone = (seconds(bare, port, bodies * OFTEN, kind) - seconds(bare, port, [], kind)) / OFTEN
    comparison = (
        f"{took / alone:.0f} × the bare server's time" if alone > 0 else "the bare server's time cannot be measured"
    )
    print(f"{name:9}{spans / took:8,.0f} spans/s of one core (asked: ≥ {REQUEST_COUNT:,}), {comparison}")
