"""How one connection reads answers: byte by byte, packed, without a length, and everything that is wrong with them."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raw_server import raw_server
from vivavoce.errors import Fault
from vivavoce.wire.http import Answer, Client, Limits

Speech = Callable[[asyncio.StreamWriter, int], Awaitable[None]]
"""What a server says to the n-th request of a connection, from 1."""


@asynccontextmanager
async def server(speech: Speech) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """Give the address of a server that says what it is told to, and the requests that came, "" for a connection."""
    arrival: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrival.append(b"")
        number = 0
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            number += 1
            arrival.append(head + await reader.readexactly(int(length or 0)))
            await speech(writer, number)

    async with raw_server(talk) as port:
        yield f"http://127.0.0.1:{port}/chat", arrival


def saying(*parts: bytes, ends: bool = False) -> Speech:
    """Say these bytes, each part after a pause, and end the connection or not."""

    async def speech(writer: asyncio.StreamWriter, number: int) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)
        if ends:
            writer.close()

    return speech


def pack(body: bytes, encoding: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        encoding.encode(),
        len(body),
        body,
    )


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


async def ask(url: str, times: int = 1, *, size: int = 10_000, method: str = "POST") -> list[Answer]:
    client = Client(Limits(timeout=5, size=size))
    try:
        return [await client.request(method, url, b"{}") for _ in range(times)]
    finally:
        await client.close()


async def failure(speech: Speech, *, size: int = 10_000, method: str = "POST") -> Fault:
    async with server(speech) as (url, _):
        with pytest.raises(Fault) as caught:
            await ask(url, size=size, method=method)
    return caught.value


WHOLE = {
    "with its length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: t\r\n\r\n",
    "after a preliminary answer": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "with a header over two lines": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "in chunks with long heads": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"1;%b\r\n%c\r\n" % (b"x" * 500, letter) for letter in b"hello")
    + b"0\r\n\r\n",
    "packed as gzip": pack(gzip.compress(b"hello"), "gzip"),
    "packed as deflate": pack(zlib.compress(b"hello"), "deflate"),
    "packed as deflate without its head": pack(bare_deflate(b"hello"), "deflate"),
    "not packed, and saying so": pack(b"hello", "identity"),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_an_answer_is_read_whole_however_it_is_sent(name: str) -> None:
    sent = WHOLE[name]
    for parts in ([sent], [sent[i : i + 1] for i in range(len(sent))]):
        async with server(saying(*parts)) as (url, arrival):
            answers = await ask(url, times=2)
        assert [answer.text for answer in answers] == ["hello", "hello"]
        assert arrival.count(b"") == 1, "the connection is kept"


async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async with server(saying(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", ends=True)) as (url, arrival):
        answers = await ask(url, times=2)
    assert [answer.text for answer in answers] == ["hello", "hello"]
    assert arrival.count(b"") == 2


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ],
)
async def test_a_connection_that_cannot_be_trusted_to_go_on_is_not_used_again(sent: bytes) -> None:
    async with server(saying(sent)) as (url, arrival):
        answers = await ask(url, times=2)
    assert [answer.text for answer in answers] == ["hello", "hello"]
    assert arrival.count(b"") == 2


async def test_bytes_that_come_unasked_end_a_kept_connection() -> None:
    hello = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    async def speech(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(hello)
        asyncio.get_running_loop().call_later(0.01, writer.write, hello.replace(b"hello", b"evil!"))

    client = Client(Limits(timeout=5))
    async with server(speech) as (url, arrival):
        first = await client.request("POST", url, b"{}")
        await asyncio.sleep(0.05)
        second = await client.request("POST", url, b"{}")
        await client.close()
    assert (first.text, second.text) == ("hello", "hello")
    assert arrival.count(b"") == 2


BROKEN = {
    "ends within its head": (saying(b"HTTP/1.1 200 OK\r\nContent-", ends=True), "connection", "connection broke"),
    "ends within its body": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", ends=True),
        "connection",
        "connection broke",
    ),
    "ends within a chunk": (
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhel", ends=True),
        "connection",
        "connection broke",
    ),
    "ends before its end when packed": (
        saying(pack(gzip.compress(b"hello" * 9)[:-12], "gzip")),
        "connection",
        "the compressed response is incomplete",
    ),
    "is packed and damaged": (saying(pack(b"\x1f\x8bhello", "gzip")), "connection", "is damaged"),
    "goes on after its end when packed": (
        saying(pack(gzip.compress(b"hello") + gzip.compress(b"hello"), "gzip")),
        "connection",
        "has data after its end",
    ),
    "is packed in an unknown way": (saying(pack(b"hello", "br")), "format", "its encoding 'br' is not supported"),
    "is another protocol": (saying(b"220 mail.example ESMTP ready\r\n\r\n"), "format", "is not HTTP"),
    "has two lengths": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        "format",
        "is not HTTP",
    ),
    "has headers without end": (
        saying(b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 900 + b"\r\n"] * 200),
        "format",
        "is not HTTP",
    ),
    "has a header without end": (
        saying(b"HTTP/1.1 200 OK\r\nX: ", *[b"y" * 9_000] * 8),
        "format",
        "is not HTTP: Got more than 65536 bytes when reading",
    ),
    "has a length and chunks": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        "format",
        "is not HTTP",
    ),
    "has a length that is not a number": (
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"),
        "format",
        "is not HTTP",
    ),
    "has a part longer than it says": (
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n"),
        "format",
        "is not HTTP",
    ),
    "switches to another protocol": (
        saying(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nxyz"),
        "http",
        "answered 101",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_an_answer_that_is_not_whole_or_none_is_a_named_failure(name: str) -> None:
    speech, kind, expected = BROKEN[name]
    fault = await failure(speech)
    assert (fault.kind, fault.retryable) == (kind, False)
    assert expected in str(fault)


LARGE = {
    "with its length": (b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n", b"blah " * 4_000),
    "packed": (pack(gzip.compress(b"blah " * 2_000_000), "gzip"),),
    "without end": (b"HTTP/1.1 200 OK\r\n\r\n", *[b"blah " * 1_000] * 5),
}


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@given(
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED, pack(b"", "deflate"), pack(b"", "gzip")]),
    st.binary(max_size=200),
)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", b"")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n", b"")
@example(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n\x00", b"")
@example(CHUNKED, b"-1\r\n\r\n")
@settings(max_examples=60)
def test_any_bytes_are_an_answer_or_a_named_failure(beginning: bytes, rest: bytes) -> None:
    async def listen() -> None:
        async with server(saying(beginning + rest, ends=True)) as (url, _):
            client = Client(Limits(timeout=5, size=10_000))
            outcomes = await asyncio.gather(client.request("POST", url, b"{}"), return_exceptions=True)
            await client.close()
        outcome = outcomes[0]
        if isinstance(outcome, Answer):
            assert len(outcome.body) <= 10_000
        else:
            assert isinstance(outcome, Fault)
            assert outcome.kind in ("connection", "format", "http", "size")
            assert len(str(outcome).splitlines()) == 1

    asyncio.run(listen())


async def test_a_secret_in_a_malformed_answer_is_cut_out() -> None:
    client = Client(Limits(timeout=5), secrets=["sk-very-secret-key"])
    for sent in (
        b"HTTP/1.1 200 OK\r\nX sk-very-secret-key: y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: sk-very-secret-key" + b"y" * 70_000,
        b"HTTP/1.1 401 no sk-very-secret-key\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: http://h/sk-very-secret-key\r\nContent-Length: 0\r\n\r\n",
    ):
        async with server(saying(sent, ends=True)) as (url, _):
            with pytest.raises(Fault) as caught:
                await client.request("GET", url)
        assert "sk-very" not in str(caught.value)
    await client.close()


@pytest.mark.parametrize("name", LARGE)
async def test_more_than_is_allowed_is_not_read(name: str) -> None:
    fault = await failure(saying(*LARGE[name]))
    assert fault.kind == "size"
    assert (fault.evidence or "").startswith("blah")


async def test_a_broken_connection_is_tried_once_more_where_the_method_allows_it() -> None:
    async def speech(writer: asyncio.StreamWriter, number: int) -> None:
        if number == 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        else:
            writer.close()

    async with server(speech) as (url, arrival):
        answers = await ask(url, times=2, method="PUT")
        assert [answer.text for answer in answers] == ["hello", "hello"]
        assert (arrival.count(b""), len(arrival)) == (2, 5)
        with pytest.raises(Fault, match="connection broke"):
            await ask(url, times=2, method="POST")


async def test_a_cookie_is_given_to_the_caller_and_not_sent_back() -> None:
    sent = b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1; Path=/\r\nSet-Cookie: b=\xe9\r\nContent-Length: 5\r\n\r\nhello"
    async with server(saying(sent)) as (url, arrival):
        answers = await ask(url.replace("127.0.0.1", "localhost"), times=2)
    assert [answer.cookies for answer in answers] == [{"id": "1", "b": "\ufffd"}] * 2
    assert b"cookie:" not in b"".join(arrival).lower()


async def test_a_long_header_is_read() -> None:
    long = b"HTTP/1.1 200 OK\r\nX: %b\r\nContent-Length: 5\r\n\r\nhello" % (b"x" * 60_000)
    async with server(saying(long)) as (url, _):
        assert (await ask(url))[0].text == "hello"


@pytest.mark.parametrize("charset", [b"\xe9", b"idna", b"undefined", b"rot13"])
async def test_a_charset_that_is_not_of_texts_is_replaced(charset: bytes) -> None:
    sent = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=%b\r\nContent-Length: 5\r\n\r\nhello" % charset
    async with server(saying(sent)) as (url, _):
        assert (await ask(url))[0].text == "hello"


async def test_an_answer_to_head_has_no_body() -> None:
    async with server(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")) as (url, _):
        answers = await ask(url, method="HEAD")
    assert answers[0].text == ""


async def test_a_request_is_given_up_while_it_waits_for_a_connection() -> None:
    async def silence(writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(1)

    client = Client(Limits(concurrency=1, timeout=0.05))
    async with server(silence) as (url, arrival):
        results = await asyncio.gather(*(client.request("POST", url) for _ in range(3)), return_exceptions=True)
        await client.close()
    assert [result.kind for result in results if isinstance(result, Fault)] == ["timeout"] * 3
    assert len([request for request in arrival if request]) < 3, "one that waited sent nothing"


async def test_a_cancelled_request_takes_its_connection_with_it() -> None:
    came_first = asyncio.Event()

    async def late(writer: asyncio.StreamWriter, number: int) -> None:
        if not came_first.is_set():
            came_first.set()
            await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    client = Client(Limits(concurrency=1, timeout=5))
    async with server(late) as (url, arrival):
        first = asyncio.create_task(client.request("POST", url, b"first"))
        await came_first.wait()
        first.cancel()
        assert (await client.request("POST", url, b"second")).text == "hello"
        assert first.cancelled()
        await client.close()
    assert arrival.count(b"") == 2
