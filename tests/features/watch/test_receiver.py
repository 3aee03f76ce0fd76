"""What a sender is answered, by the rules of OTLP, and that what is acknowledged is on disk."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import threading
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from vivavoce.conversations.format import Member, Place
from vivavoce.features.watch import intake
from vivavoce.features.watch import receiver as receiving
from vivavoce.features.watch import spool as spooling
from vivavoce.features.watch.intake import MAX_BYTES, MAX_MEMBERS, PIECE_BYTES, PROTOBUF, Arrival, Delivery, Refused
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.spool import BATCH_BYTES, Spool
from vivavoce.server.access import Access
from vivavoce.server.authenticator import Authenticator
from vivavoce.store.store import Store

from .traffic import Json, attribute, export, in_protobuf, post, turn


async def count_spans(spool: Spool) -> int:
    return await spool.work(lambda database, _: database.execute("SELECT count(*) FROM span").fetchone()[0])


async def test_json_and_protocol_buffers_compressed_or_not_are_kept_before_the_answer(
    receiver: Receiver, spool: Spool
) -> None:
    body = export(turn("a", 0))
    assert (await post(receiver, body)).json() == {}
    packed = gzip.compress(json.dumps(export(turn("a", 1))).encode())
    assert (await post(receiver, packed, content_encoding="gzip")).status == 200
    answer = await post(receiver, in_protobuf(export(turn("b", 0))), content_type=PROTOBUF)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"", PROTOBUF)
    deflated = zlib.compress(in_protobuf(export(turn("b", 1))))
    assert (await post(receiver, deflated, content_type=PROTOBUF, content_encoding="deflate")).status == 200
    assert await count_spans(spool) == 4


async def test_gzip_of_several_members_is_kept_whole(receiver: Receiver, spool: Spool) -> None:
    body = in_protobuf(export(turn("a", 0))), in_protobuf(export(turn("b", 0)))
    answer = await post(receiver, b"".join(map(gzip.compress, body)), content_type=PROTOBUF, content_encoding="gzip")
    assert (answer.status, await count_spans(spool)) == (200, 2)
    cut = gzip.compress(body[0]) + gzip.compress(body[1])[:-9]
    assert (await post(receiver, cut, content_type=PROTOBUF, content_encoding="gzip")).status == 400
    bomb = gzip.compress(b" " * (MAX_BYTES // 2 + 1)) * 2
    assert (await post(receiver, bomb, content_encoding="gzip")).status == 413


class CountingUnpacker:
    """Unpacks as zlib does, and counts the bytes that go in."""

    unpacked_bytes = 0

    def __init__(self, bits: int) -> None:
        self._inner = zlib_unpacker(bits)

    def decompress(self, data: bytes, most: int) -> bytes:
        CountingUnpacker.unpacked_bytes += len(data)
        return self._inner.decompress(data, most)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


zlib_unpacker = zlib.decompressobj


async def test_many_members_are_refused_before_the_rest_of_the_body_is_copied_for_each(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountingUnpacker, "unpacked_bytes", 0)
    monkeypatch.setattr(zlib, "decompressobj", CountingUnpacker)
    body = gzip.compress(b"", mtime=0) * 20_000
    answer = await post(receiver, body, content_encoding="gzip")
    assert (answer.status, answer.json()["message"]) == (
        400,
        "the body has more than 100 members of gzip; compress it as one",
    )
    assert CountingUnpacker.unpacked_bytes <= MAX_MEMBERS * PIECE_BYTES


async def test_a_span_that_arrives_twice_is_kept_once(receiver: Receiver, spool: Spool) -> None:
    for _ in range(2):
        await post(receiver, export(turn("a", 0)))
        await post(receiver, in_protobuf(export(turn("a", 0))), content_type=PROTOBUF)
    assert await count_spans(spool) == 1
    assert spool.counts["repeated"] == 3


async def test_logs_are_kept_and_the_same_log_once(receiver: Receiver, spool: Spool) -> None:
    log = {"timeUnixNano": "1800000000000000000", "traceId": "a" * 32, "eventName": "gen_ai.user.message"}
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
    for _ in range(2):
        assert (await post(receiver, body, path="/v1/logs")).status == 200
    assert await count_spans(spool) == 1


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"\x0a\xff\xff", {"content_type": PROTOBUF}, 400, "not traces of OTLP in protocol buffers"),
        (b"\x0a\x05ab", {"content_type": PROTOBUF}, 400, "cut off"),
        (b"{", {}, 400, "not traces of OTLP in JSON"),
        (b"\xff\xfe", {}, 400, "not traces of OTLP in JSON"),
        (b"[" * 100_000, {}, 400, "not traces of OTLP in JSON"),
        (b'{"spans": 3}', {}, 400, "no resourceSpans"),
        (b'"resourceSpans"', {}, 400, "no resourceSpans"),
        (b"{}", {"content_type": "text/plain"}, 415, "send application/x-protobuf"),
        (b"{}", {"content_encoding": "br"}, 415, "send gzip or none"),
        (b"{}", {"content_encoding": "gzip"}, 400, "not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-9], {"content_encoding": "gzip"}, 400, "cut off"),
        (b"{}", {"path": "/v1/metrics"}, 404, "OTEL_METRICS_EXPORTER=none"),
        (b"", {"method": "GET"}, 405, "with POST"),
        (b"{}", {"host": "evil.example"}, 421, "does not answer to this host name"),
        (b"{}", {"origin": "https://evil.example"}, 403, "must come from a page"),
    ],
)
async def test_what_cannot_be_taken_is_refused_in_plain_words(
    receiver: Receiver, body: bytes, headers: dict[str, Any], status: int, words: str
) -> None:
    answer = await post(receiver, body, **headers)
    assert answer.status == status
    text = answer.body.decode("utf-8", "replace")
    assert words in text
    if headers.get("content_type") != PROTOBUF:
        assert set(answer.json()) == {"code", "message"}


async def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(receiver: Receiver) -> None:
    bomb = gzip.compress(b" " * (MAX_BYTES + 2))
    assert len(bomb) < 100_000
    answer = await post(receiver, bomb, content_encoding="gzip")
    assert answer.status == 413
    assert "smaller batches" in answer.json()["message"]


async def test_a_body_that_is_too_large_is_refused_without_being_kept_in_memory(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "MAX_BYTES", 100_000)
    answer = await post(receiver, b" " * 200_000)
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    monkeypatch.setattr(receiving, "MOST_AT_ONCE", 50_000)
    answer = await post(receiver, b" " * 90_000)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert (await post(receiver, b"{}")).status == 200


async def test_what_of_a_request_cannot_be_kept_is_told_and_the_rest_is_kept(receiver: Receiver, spool: Spool) -> None:
    huge = turn("b", 0)
    huge["attributes"].append(attribute("input", "x" * 10_000_000))
    body = export(turn("a", 0), huge, {**turn("c", 0), "traceId": ""})
    answer = (await post(receiver, body)).json()["partialSuccess"]
    assert answer["rejectedSpans"] == "2"
    assert "a span of 9.5 MB is larger than 8 MB" in answer["errorMessage"]
    assert "without the id of its trace" in answer["errorMessage"]
    assert await count_spans(spool) == 1
    in_bytes = ExportTraceServiceResponse()
    response = await post(receiver, in_protobuf(export(turn("d", 0), huge)), content_type=PROTOBUF)
    in_bytes.ParseFromString(response.body)
    assert in_bytes.partial_success.rejected_spans == 1


async def test_no_spans_at_all_are_taken_as_what_they_are(receiver: Receiver) -> None:
    nothing: list[Json] = [{}, {"resourceSpans": []}, export()]
    for body in nothing:
        assert ((answer := await post(receiver, body)).status, answer.json()) == (200, {})
    assert (await post(receiver, b"", content_type=PROTOBUF)).status == 200


async def test_where_there_is_no_room_senders_are_told_to_come_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "small.traces", 1)
    answer = await post(Receiver(spool, Access.of(["127.0.0.1:4318"])), export(turn("a", 0)))
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "waiting to be judged" in answer.json()["message"]
    spool.close()


async def waiting_at_once(spool: Spool, number: int, size: int) -> tuple[list[int], list[Delivery | BaseException]]:
    """Put requests of this many bytes while the spool is busy; return how many spans were kept as each was read."""
    kept_before: list[int] = []

    def read(name: str) -> Delivery:
        database = spool._database  # pyright: ignore[reportPrivateUsage]
        kept_before.append(database.execute("SELECT count(*) FROM span").fetchone()[0])
        return Delivery([Arrival(Member(Place(Path("x"), 1), None, name, identity="s"), b"x" * size, is_own=False)])

    started, go = threading.Event(), threading.Event()
    busy = asyncio.create_task(spool.work(lambda _, __: (started.set(), go.wait())))
    await asyncio.to_thread(started.wait)
    waiting = [asyncio.create_task(spool.put(partial(read, str(place)), 1.0)) for place in range(number)]
    await asyncio.sleep(0)
    go.set()
    await busy
    return kept_before, await asyncio.gather(*waiting, return_exceptions=True)


async def test_requests_that_wait_are_read_and_kept_one_after_the_other(spool: Spool) -> None:
    kept_before, _ = await waiting_at_once(spool, 3, BATCH_BYTES)
    assert kept_before == [0, 1, 2]


async def test_small_requests_that_wait_are_committed_at_once(spool: Spool) -> None:
    kept_before, _ = await waiting_at_once(spool, 3, 10)
    assert kept_before == [0, 0, 0]
    assert await count_spans(spool) == 3


async def test_room_is_looked_for_before_each_request_is_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "small.traces", 1_000_000)
    kept_before, answers = await waiting_at_once(spool, 4, 600_000)
    assert len(kept_before) == 2
    assert [type(answer) for answer in answers] == [Delivery, Delivery, Refused, Refused]
    assert spool.counts["refused: no room"] == 2
    spool.close()


async def test_a_spool_that_is_busy_is_closed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "END_SECONDS", 0.1)
    spool, go = Spool(tmp_path / "busy.traces", 10**9), threading.Event()
    busy = asyncio.create_task(spool.work(lambda _, __: go.wait()))
    await asyncio.sleep(0)
    await asyncio.to_thread(spool.close)
    assert not busy.done()
    go.set()
    await busy


async def test_spans_that_are_larger_as_they_are_kept_are_left_out(
    receiver: Receiver, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAX_KEPT_BYTES", 2000)
    answer = await post(receiver, export(*(turn(f"c{number}", 0) for number in range(5))))
    rejected = int(answer.json()["partialSuccess"]["rejectedSpans"])
    assert 0 < rejected == 5 - await count_spans(spool)


async def test_spans_that_join_bundles_one_by_one_are_not_moved_each_time(receiver: Receiver, spool: Spool) -> None:
    for number in range(30):
        await post(receiver, export(turn(f"small {number}", 0, trace=f"{number:032x}")))
    trace = "f" * 32
    await post(receiver, export(*(turn(f"big {n}", 0, trace=trace, spanId=f"{n:016x}") for n in range(100))))
    moved = 0
    for number in reversed(range(30)):
        before = await bundles(spool)
        await post(receiver, export(turn(f"small {number}", 0, trace=trace, spanId=f"{1000 + number:016x}")))
        after = await bundles(spool)
        moved += sum(after[span] != bundle for span, bundle in before.items())
    assert moved <= 60


async def bundles(spool: Spool) -> dict[int, int]:
    return await spool.work(lambda database, _: dict(database.execute("SELECT number, bundle FROM span")))


async def test_a_full_disk_is_told_from_other_failures_and_spans_are_taken_again_when_there_is_room(
    tmp_path: Path,
) -> None:
    (tmp_path / "full").mkdir()
    spool = Spool(tmp_path / "full" / "x.traces", 1_000_000_000)
    receiver = Receiver(spool, Access.of(["127.0.0.1:4318"]))
    long = turn("a", 0)
    long["attributes"].append(attribute("input", "x" * 1_000_000))
    await spool.work(lambda database, _: database.execute("PRAGMA max_page_count = 20").fetchall())
    answer = await post(receiver, export(long))
    assert (answer.status, "the disk is full" in answer.json()["message"]) == (503, True)
    await spool.work(lambda database, _: database.execute("PRAGMA max_page_count = 100000").fetchall())
    assert (await post(receiver, export(long))).status == 200
    await spool.work(lambda database, _: database.execute("DROP TABLE span").fetchall())
    answer = await post(receiver, export(turn("b", 0)))
    assert (answer.status, "the disk is full" in answer.json()["message"]) == (503, False)
    spool.close()


async def test_a_disk_that_fails_is_an_answer_too(receiver: Receiver, spool: Spool) -> None:
    def fail(database: sqlite3.Connection, _: object) -> None:
        database.execute("DROP TABLE span")

    await spool.work(fail)
    answer = await post(receiver, export(turn("a", 0)))
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")


async def test_a_token_is_asked_where_one_is_demanded(spool: Spool, store: Store) -> None:
    access = Access.of(["127.0.0.1:4318"], "secret", demanded=True)
    receiver = Receiver(spool, access, Authenticator(store, access.digest))
    answer = await post(receiver, export(turn("a", 0)))
    assert answer.status == 401
    assert "OTEL_EXPORTER_OTLP_HEADERS" in answer.json()["message"]
    assert (await post(receiver, export(turn("a", 0)), authorization="Bearer wrong")).status == 401
    assert (await post(receiver, export(turn("a", 0)), authorization="Bearer secret")).status == 200
    headers = {"authorization": "Bearer secret", "host": "viva:4318"}  # as another container calls it
    assert (await post(receiver, export(turn("b", 0)), **headers)).status == 200
    reader, secret = store.tokens.create("reader", "read")
    assert reader.role == "read"
    assert (await post(receiver, export(turn("a", 0)), authorization=f"Bearer {secret}")).status == 403
