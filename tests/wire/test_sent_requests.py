"""What a request says: the bytes that a server receives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from raw_server import raw_server
from vivavoce.wire.http import NO_HEADERS, Client, Limits


async def send(
    method: str, path: str = "/", headers: Mapping[str, str] = NO_HEADERS, data: bytes | None = None, user: str = ""
) -> tuple[str, dict[str, str], bytes]:
    """Send a request; return its first line, its headers, and its body as a server receives them."""
    heads: list[bytes] = []
    bodies: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        length = heads[0].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        bodies.append(await reader.readexactly(int(length or 0)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        bodies.append(await reader.read())

    client = Client(Limits(timeout=5))
    async with raw_server(talk) as port:
        await client.request(method, f"http://{user}127.0.0.1:{port}{path}", data, headers)
        await client.close()
        first, *lines = heads[0].decode().rstrip().split("\r\n")
        fields = dict(line.replace(f":{port}", ":PORT").split(": ", 1) for line in lines)
        assert len({name.lower() for name in fields}) == len(lines), "no header comes twice"
        return first, fields, b"".join(bodies)


async def test_a_request_says_little_of_itself() -> None:
    line, headers, body = await send("POST", "/a b/../ü?q=1&x=é#part", {"X-Trace": "7"}, b"{}")
    assert line == "POST /%C3%BC?q=1&x=%C3%A9 HTTP/1.1"
    assert headers == {
        "Host": "127.0.0.1:PORT",
        "User-Agent": "vivavoce",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "Content-Type": "application/octet-stream",
        "X-Trace": "7",
        "Content-Length": "2",
    }
    assert body == b"{}"


async def test_headers_of_the_caller_replace_ours_whatever_their_case() -> None:
    ours = {"content-type": "text/plain", "HOST": "other", "accept-ENCODING": "identity", "user-agent": "me"}
    _, headers, _ = await send("POST", headers=ours, data=b"x")
    assert {name.lower(): value for name, value in headers.items()} == {
        "host": "other",
        "content-type": "text/plain",
        "accept-encoding": "identity",
        "user-agent": "me",
        "accept": "*/*",
        "content-length": "1",
    }


@pytest.mark.parametrize("size", [4, 3_000_000])
async def test_where_a_body_ends_is_not_for_the_caller_to_say(size: int) -> None:
    fields = {"Content-Length": "1", "Transfer-Encoding": "chunked"}
    _, headers, body = await send("POST", headers=fields, data=b"x" * size)
    assert (headers["Content-Length"], len(body)) == (str(size), size)
    assert "Transfer-Encoding" not in headers


async def test_a_request_without_a_body() -> None:
    _, headers, _ = await send("GET")
    assert "Content-Length" not in headers
    _, headers, _ = await send("POST")
    assert headers["Content-Length"] == "0"


async def test_the_user_of_an_address_is_sent_as_a_header() -> None:
    _, headers, _ = await send("GET", user="me:p%40ss@")
    assert headers["Authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET / HTTP/1.1\r\nX:", {}),
        ("", {}),
        ("GET", {"X": "a\r\nEvil: b"}),
        ("GET", {"X": "a\nb"}),
        ("GET", {"X": "a\0b"}),
        ("GET", {"X\r\nEvil": "b"}),
        ("GET", {"X: y": "b"}),
        ("GET", {"": "b"}),
    ],
)
async def test_nothing_may_end_a_line_early(method: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"name of a method|line break"):
        await send(method, headers=headers)
