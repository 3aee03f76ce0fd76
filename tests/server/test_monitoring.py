"""Logs, request ids, probes and metrics of a server."""

from __future__ import annotations

import ctypes
import json
import logging
import re
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.listening import listening
from vivavoce.server.monitoring import LOGGER, LogOptions, Meter, Monitoring, log
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

from .live import get, running, send

TOKEN = "a-token-of-the-environment"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(autouse=True)
def _usual_log() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    loggers = (LOGGER, logging.getLogger("uvicorn"))
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


@contextmanager
def monitored(store: Store, monitoring: Monitoring, *, token: str | None = TOKEN) -> Generator[str]:
    bound = listening("127.0.0.1", 0)
    port = bound.getsockname()[1]
    access = Access.of({f"127.0.0.1:{port}"}, token)
    with running(create_app(store, access, ServerPolicy(Path.cwd()), monitoring), bound):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


def test_each_request_is_logged_as_json_with_the_id_of_its_answer_and_without_its_query(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    LogOptions("json", "info").start()
    with monitored(store, Monitoring()) as url:
        answers = [
            get(f"{url}/api/v1/runs?text=s3cret", {**BEARER, "x-request-id": "from-the-proxy.1"}),
            get(f"{url}/api/v1/runs/none%0Ax?token=s3cret", {**BEARER, "x-request-id": "bad id\t"}),
            get(f"{url}/api/v1/runs", {"authorization": "Bearer s3cret"}),
            get(f"{url}/livez"),
        ]
    text = capfd.readouterr().err
    lines = [json.loads(line) for line in text.splitlines()]
    found = [(line["path"], line["status"], line["level"], line["id"]) for line in lines if line["event"] == "request"]
    assert found == [
        ("/api/v1/runs", 200, "info", "from-the-proxy.1"),
        ("/api/v1/runs/none%0Ax", 422, "warning", answers[1].headers["x-request-id"]),
        ("/api/v1/runs", 401, "warning", answers[2].headers["x-request-id"]),
    ]
    assert re.fullmatch("[0-9a-f]{16}", answers[1].headers["x-request-id"])
    assert [answer.headers["x-request-id"] for answer in answers].count("from-the-proxy.1") == 1
    assert ("s3cret" in text, TOKEN in text) == (False, False)


def test_a_line_for_people_is_one_line_whatever_is_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    LogOptions("text", "warning").start()
    log("info", "job.started", job="job-1")
    log("error", "job.ended", job="job-1", detail="two\nlines \x1b[31m", ms=1.5, run=None)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0][19:].startswith("  error  job.ended  job=job-1  detail=")
    assert "\x1b" not in lines[0]
    assert lines[0].endswith("ms=1.5")


def test_what_a_library_for_databases_logs_is_one_line_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    LogOptions("json", "info").start()
    for name in ("sqlalchemy.pool", "psycopg"):
        try:
            raise OSError("the connection is closed")
        except OSError:
            logging.getLogger(name).exception("cannot reset")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert len(lines) == 2
    assert {(line["event"], line["detail"], line["level"]) for line in lines} == {("database", "cannot reset", "error")}


def test_jobs_are_logged_from_their_start_to_their_end(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    LogOptions("json", "info").start()
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    body = {"kind": "evaluation", "conversations": [{"id": "a", "messages": talk}], "metrics": ["refusal"]}
    with monitored(store, Monitoring()) as url:
        job = send("POST", f"{url}/api/v1/jobs", body, BEARER).json()["id"]
        get(f"{url}/api/v1/jobs/{job}/events", BEARER)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    events = [(line["event"], line["status"]) for line in lines if line.get("job") == job]
    assert events == [("job.started", "waiting"), ("job.ended", "finished")]


def test_probes_need_no_token_and_no_host_name(store: Store, tmp_path: Path) -> None:
    with monitored(store, Monitoring()) as url:
        for path in ("/livez", "/readyz"):
            answer = get(url + path, {"host": "10.1.2.3:8484"})
            assert (answer.status, answer.text) == (200, "ok\n")
            assert send("HEAD", url + path).status == 200
            assert send("POST", url + path, {}).status == 401
        assert get(f"{url}/api/v1/health").status == 401


def test_a_server_without_its_store_is_alive_and_not_ready(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.server.monitoring.READY_AGE", 0.0)
    with monitored(store, Monitoring()) as url:
        assert get(f"{url}/readyz").status == 200
        (tmp_path / "kept.db").rename(tmp_path / "away.db")
        answer = get(f"{url}/readyz")
        assert (get(f"{url}/livez").status, answer.status, answer.text) == (200, 503, "the store is unavailable\n")
        (tmp_path / "away.db").rename(tmp_path / "kept.db")
        assert get(f"{url}/readyz").status == 200


def end_thread(name: str, others: Sequence[threading.Thread]) -> None:
    """End the thread of that name that is not one of others, as `SystemExit` in it would."""
    (thread,) = (thread for thread in threading.enumerate() if thread.name == name and thread not in others)
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(("name", "work"), [("vivavoce-keeper", "jobs"), ("vivavoce-webhooks", "webhooks")])
def test_a_server_whose_thread_has_ended_is_alive_and_not_ready(store: Store, name: str, work: str) -> None:
    earlier = threading.enumerate()
    with monitored(store, Monitoring()) as url:
        assert get(f"{url}/readyz").status == 200
        end_thread(name, earlier)
        answer = get(f"{url}/readyz")
        assert (answer.status, answer.text) == (503, f"the thread for {work} has ended; restart the server\n")
        assert (get(f"{url}/livez").status, get(f"{url}/api/v1/runs", BEARER).status) == (200, 200)


def test_metrics_are_there_on_request_and_for_readers(store: Store) -> None:
    with monitored(store, Monitoring()) as url:
        assert get(f"{url}/metrics", BEARER).status == 404
    with monitored(store, Monitoring(has_metrics=True)) as url:
        assert get(f"{url}/metrics").status in (303, 401)
        get(f"{url}/api/v1/runs", BEARER)
        text = get(f"{url}/metrics", BEARER).text
    assert 'viva_requests_total{method="GET",status="200"} 1\n' in text
    assert 'viva_jobs{status="waiting"} 0\n' in text
    assert "viva_store_up 1\n" in text
    with monitored(store, Monitoring(has_metrics=True, is_open=True)) as url:
        assert get(f"{url}/metrics").status == 200


def test_metrics_are_lines_that_prometheus_reads_and_sums_of_all_workers() -> None:
    meter = Meter(workers=3)
    for row in range(3):
        meter.row = row
        meter.count("GET", 200, 0.02)
        meter.count("BREW", 418, 1000.0)
    lines = meter.lines()
    assert 'viva_requests_total{method="GET",status="200"} 3' in lines
    assert 'viva_requests_total{method="other",status="other"} 3' in lines
    assert 'viva_request_seconds_bucket{le="0.025"} 3' in lines
    assert 'viva_request_seconds_bucket{le="+Inf"} 6' in lines
    assert "viva_request_seconds_count 6" in lines
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+]+')
    assert [line for line in lines if not line.startswith("# ") and not sample.fullmatch(line)] == []
