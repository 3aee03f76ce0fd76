"""`viva watch` on the command line: what it asks for, what it says, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import Viva
from features.watch.traffic import export, in_protobuf, turn
from vivavoce import Store

WRONG = (
    ((), "choose what to judge with: --metrics NAMES, or --suite FILE"),
    (("--metrics", "refusal", "--suite", "s.yaml"), "choose what to judge with"),
    (("--metrics", "none"), "no metric 'none'"),
    (("--metrics", "safety"), "needs a judge"),
    (("--suite", "none.yaml"), "there is no such file"),
    (("--metrics", "refusal", "--idle", "soon"), "--idle needs a time such as 60s, 5m or 1h, got 'soon'"),
    (("--metrics", "refusal", "--sample", "150%"), "more than 100%"),
    (("--metrics", "refusal", "--sample", "a lot"), "--sample needs a share like 10% or 0.1"),
    (("--metrics", "refusal", "--max-disk", "1 big"), "--max-disk needs a size such as 500MB or 2GB"),
    (("--metrics", "refusal", "--folder", "none"), "none: there is no such folder"),
    (("--metrics", "refusal", "--host", "0.0.0.0"), "can be reached from other machines"),
)


@pytest.mark.parametrize(("options", "words"), WRONG, ids=lambda value: " ".join(value)[:40])
def test_mistakes_are_one_line_and_exit_code_2(viva: Viva, options: tuple[str, ...], words: str) -> None:
    done = viva("watch-traces", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_is_judged_once_and_the_run_is_a_point_of_a_trend(viva: Viva) -> None:
    Path("traces").mkdir()
    lines = [export(turn("a", 0)), export(turn("b", 0, "I'm sorry, I can't help with that."))]
    Path("traces/t.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    once = ("watch-traces", "--folder", "traces", "--once", "--metrics", "refusal", "--name", "Live shop")
    done = viva(*once)
    assert done.returncode == 0
    assert "2 conversations; refusal 0.500" in done.stderr
    assert viva(*once).stderr == ""
    with Store.open(".vivavoce/vivavoce.db") as store:
        (run,) = store.runs()
    assert (run.suite, run.id[:10]) == ("Live shop", "live-shop-")
    assert "viva runs grade" in viva("run", "--failed", run.id).stderr
    graded = viva("grade", run.id, "--quiet")
    assert graded.returncode == 0, graded.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_port_takes_requests_until_a_signal_ends_it_in_good_order(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("viva")), "watch-traces", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--metrics", "refusal", "--idle", "0.2s"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert f"receiving traces at http://127.0.0.1:{port}/" in process.stderr.readline()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        kind = {"content-type": "application/x-protobuf"}
        connection.request("POST", "/v1/traces", in_protobuf(export(turn("a", 0))), kind)
        assert connection.getresponse().read() == b""
        connection.close()
        assert "begins" in process.stderr.readline()
        deadline = time.monotonic() + 60
        with Store.open(tmp_path / ".vivavoce/vivavoce.db") as store:
            while store.counts(store.runs()[0].id)[0] < 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "1 conversation" in process.stderr.read()


def test_how_a_watch_is_doing_is_printed_and_its_gate_is_the_exit_code(viva: Viva) -> None:
    assert "no run has been stored here yet" in viva("watch-traces", "--status").stderr
    Path("suite.yaml").write_text(
        "name: shop\ndataset: none.jsonl\ntarget: {kind: function, function: 'bot.py:answer'}\n"
        "graders:\n  polite: {kind: rule, never: {assistant_says: sorry}}\n"
        "gate: {kind: simple, metric_key: polite, aggregation: accuracy, value: 90}\n"
    )
    Path("traces").mkdir()
    lines = [export(turn("a", 0)), export(turn("b", 0, "sorry"))]
    Path("traces/t.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    once = ("watch-traces", "--folder", "traces", "--once", "--suite", "suite.yaml", "--quiet")
    assert viva(*once).returncode == 0
    few = viva("watch-traces", "--check")
    assert few.returncode == 3
    assert "gate undecided: 2 conversations judged in the last 24 hours; the gate needs at least 30" in few.stdout
    assert viva(*once, "--least", "2", "--window", "2h").returncode == 0
    fails = viva("watch-traces", "--check")
    assert fails.returncode == 1
    assert "gate firing: polite: pass rate must be ≥ 90%; it is 50%, 95% interval 9.5% to 90.5%" in fails.stdout
    assert "2 conversations in 48 hours, 2 sampled, 2 judged, 0 with an error" in fails.stdout
    assert "failed: b in production-" in fails.stdout
    assert viva("watch-traces", "--status").returncode == 0
    data = json.loads(viva("watch-traces", "--check", "--json").stdout)
    assert (data["verdict"], data["state"]["alert"]["window"]) == ("fail", 7200.0)
    assert "no watch 'shop'" in viva("watch-traces", "--check", "--name", "shop").stderr


def test_a_watch_without_a_gate_has_nothing_to_check(viva: Viva) -> None:
    Path("traces").mkdir()
    assert viva("watch-traces", "--folder", "traces", "--once", "--metrics", "refusal", "--quiet").returncode == 0
    done = viva("watch-traces", "--check")
    assert done.returncode == 2
    assert "the watch 'production' has no gate; start it with --suite FILE" in done.stderr
    assert "--json needs --status or --check" in viva("watch-traces", "--json", "--metrics", "refusal").stderr
