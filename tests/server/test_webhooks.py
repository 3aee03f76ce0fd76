from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest

from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.webhooks import Sender
from vivavoce.store.labels import LabelPlace, now_label
from vivavoce.store.store import Store
from vivavoce.store.webhooks import LEASE, Delivery
from vivavoce.wire import outward
from vivavoce.wire.outward import check_outward, post

from .live import send, serving
from .pages.cases import keep, outcome

KEY = AttemptKey("one", "bot", 0)
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


class Receiver(HTTPServer):
    """Fails some requests with 503, and keeps all of them with their headers."""

    def __init__(self, failures: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failures = failures
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?x=1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Keep the request."""
        receiver = cast("Receiver", self.server)
        body = self.rfile.read(int(self.headers["content-length"]))
        receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(503 if len(receiver.got) <= receiver.failures else 204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - it is called so there
        """Say nothing."""


@contextmanager
def receiving(failures: int = 0) -> Generator[Receiver]:
    with Receiver(failures) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


@contextmanager
def sending(store: Store, *, private: bool = True) -> Generator[None]:
    sender = Sender(store, private=private, first_wait=0.01, pause=0.01)
    yield
    sender.stop()


def until(store: Store, webhook: str, attempts: int) -> list[Delivery]:
    """Wait until every delivery has had so many attempts; the test fails where that never is."""
    deadline = time.monotonic() + 30
    found = store.webhooks.deliveries(webhook)
    while any(one.attempts < attempts for one in found):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
        found = store.webhooks.deliveries(webhook)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


def test_an_event_arrives_signed_after_two_failures(store: Store) -> None:
    with receiving(failures=2) as receiver:
        hook = store.webhooks.add(receiver.url, ["run.finished"], actor="Ida", secret=SECRET)
        keep(store, [outcome("one")])
        with sending(store):
            (found,) = until(store, hook.id, 3)
    assert (found.event, found.attempts, found.status, found.next_at) == ("run.finished", 3, 204, None)
    assert found.delivered_at is not None
    assert len({body for _, body in receiver.got}) == 1
    assert {headers["webhook-id"] for headers, _ in receiver.got} == {found.id}
    headers, body = receiver.got[-1]
    signed = f"{found.id}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
    told = json.loads(body)
    assert (told["type"], told["data"]["run"], told["data"]["suite"]) == ("run.finished", "run-1", "support")
    assert "goal" in told["data"]["finding"]


def test_labels_and_comments_are_told_and_what_nobody_asked_for_is_not(store: Store) -> None:
    keep(store, [outcome("one")])
    with receiving() as receiver:
        both = store.webhooks.add(receiver.url, ["label.saved", "comment.added"], actor="Ida")
        runs = store.webhooks.add(receiver.url, ["run.finished"], actor="Ida")
        store.labels.set("run-1", now_label(LabelPlace("run-1", KEY, None, "goal", "Ida"), "fail"))
        store.comments.add("run-1", KEY, None, "Ida", "hm")
        with sending(store):
            until(store, both.id, 1)
    assert store.webhooks.deliveries(runs.id) == []
    told = {one["type"]: one["data"] for one in (json.loads(body) for _, body in receiver.got)}
    assert told["label.saved"]["label"]["verdict"] == "fail"
    assert told["comment.added"]["comment"]["text"] == "hm"


def test_what_was_due_is_sent_after_a_restart(store: Store) -> None:
    keep(store, [outcome("one")])
    with receiving() as receiver:
        hook = store.webhooks.add(receiver.url, ["comment.added"], actor="Ida")
        store.comments.add("run-1", KEY, None, "Ida", "hm")
        now = time.time()
        (taken,) = store.webhooks.take(now + 1)  # a server that is killed now
        assert store.webhooks.take(now + LEASE / 2) == []
        (again,) = store.webhooks.take(now + LEASE + 2)
        assert again.id == taken.id
        store.webhooks.end(again, now - 10, status=None, error="killed", first_wait=1)
        with sending(store):
            (found,) = until(store, hook.id, 1)
            while found.delivered_at is None:
                (found,) = store.webhooks.deliveries(hook.id)
    assert len(receiver.got) == 1


def test_private_addresses_are_refused(store: Store) -> None:
    for url in (
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/",
    ):
        with pytest.raises(UsageError, match="is in a private network"):
            check_outward(url, private=False)
    for url in (
        *("http://[::ffff:127.0.0.1]/", "http://[2002:7f00:1::]/", "http://0/", "http://224.0.0.1/"),
        *("http://[64:ff9b::a9fe:a9fe]/", "http://[::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/", "http://[fec0::1]/"),
        *("http://192.0.0.192/", "http://168.63.129.16/", "http://192.88.99.1/", "http://[3fff::1]/"),
        *("http://[5f00::1]/", "http://[64:ff9b:1:a9fe:00a9:fe00:808:808]/", "http://[64:ff9b:1::808:808]/"),
    ):
        with pytest.raises(UsageError, match="is in a private network"):
            check_outward(url, private=False)
    for url in ("http://93.184.215.14/", "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/"):
        check_outward(url, private=False)
    for url in ("http://93.184.215.14/x y", "http://93.184.215.14/\r\nX-Evil: 1", "http://93.184.215.14/\0"):
        with pytest.raises(UsageError, match="visible ASCII"):
            check_outward(url, private=False)
    for url in ("file:///etc/passwd", "http://user:pass@x.example/", "ftp://x", ""):
        with pytest.raises(UsageError):
            check_outward(url, private=True)
    keep(store, [outcome("one")])
    with receiving() as receiver:
        hook = store.webhooks.add(receiver.url, ["comment.added"], actor="Ida")
        store.comments.add("run-1", KEY, None, "Ida", "hm")
        with sending(store, private=False):
            (found,) = until(store, hook.id, 1)
    assert receiver.got == []
    assert found.error is not None
    assert "is in a private network" in found.error


def test_an_admin_adds_and_removes_webhooks_and_sees_attempts(store: Store) -> None:
    keep(store, [outcome("one")])
    admin, writer = (store.tokens.create(name, name)[1] for name in ("admin", "write"))
    with (
        receiving() as receiver,
        serving(store, ServerPolicy(private_webhooks=True), demanded=True) as url,
        Client(url, admin) as client,
    ):
        made = client.add_webhook(receiver.url, ["comment.added"])
        assert made.secret.startswith("whsec_")
        (listed,) = client.webhooks()
        assert (listed.url, "secret" in listed.model_dump()) == (receiver.url, False)
        client.comment("latest", "one", "hm")
        until(store, made.id, 1)
        assert [(delivery.event, delivery.status) for delivery in client.deliveries(made.id)] == [
            ("comment.added", 204)
        ]
        told = {"authorization": f"Bearer {writer}"}
        assert send("POST", f"{url}/api/v1/webhooks", {"url": receiver.url}, told).status == 403
        with pytest.raises(UsageError, match="is not a web address"):
            client.add_webhook("nowhere")
        assert client.remove_webhook(made.id).id == made.id
        assert client.webhooks() == []


@pytest.mark.parametrize("secret", ["x", "whsec_", "whsec_!!", "whsec_" + base64.b64encode(b"short").decode()])
def test_a_weak_secret_is_refused(store: Store, secret: str) -> None:
    with pytest.raises(UsageError, match="24 to 64 bytes in base64"):
        store.webhooks.add("http://x.example", actor="Ida", secret=secret)


@contextmanager
def dripping(piece: bytes) -> Generator[str]:
    """Answer the first connection with the same bytes again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with suppress(OSError):
                opened, _ = listening.accept()
                with opened:
                    while True:
                        opened.sendall(piece)
                        time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


@pytest.mark.parametrize("piece", [b"x", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["drip", "continue"])
def test_a_receiver_that_never_ends_its_answer_is_left(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outward, "TIMEOUT", 0.4)
    with dripping(piece) as url, pytest.raises(TimeoutError, match="no answer in"):
        post(url, b"{}", {}, private=True)


def test_an_address_that_cannot_be_sent_is_refused() -> None:
    for url in ("http://127.0.0.1/café", "http://127.0.0.1/?x=é", "http://localhost/\u2003"):
        with pytest.raises(UsageError, match="only visible ASCII"):
            check_outward(url, private=True)


def test_a_message_that_cannot_be_sent_stops_no_other(store: Store) -> None:
    keep(store, [outcome("one")])
    with receiving() as receiver:
        broken, good = (
            store.webhooks.add(url, ["comment.added"], actor="Ida") for url in (f"{receiver.url}é", receiver.url)
        )
        store.comments.add("run-1", KEY, None, "Ida", "hm")
        with sending(store):
            until(store, good.id, 1)
            (kept,) = until(store, broken.id, 1)
    assert (kept.status, "UnicodeEncodeError" in str(kept.error)) == (None, True)


def test_a_slow_receiver_holds_up_no_other(store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, receiving() as receiver:
        slow = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        for url in (slow, receiver.url):
            store.webhooks.add(url, ["comment.added"], actor="Ida")
        keep(store, [outcome("one")])
        for _ in range(2):
            store.comments.add("run-1", KEY, None, "Ida", "hm")
        fast = store.webhooks.all()[1]
        with sending(store):
            delivered = until(store, fast.id, 1)
            waiting = store.webhooks.deliveries(store.webhooks.all()[0].id)
        assert [delivery.status for delivery in delivered] == [204, 204]
        assert [delivery.attempts for delivery in waiting] == [0, 0]
