"""How connections are opened: secure ones, hosts that are looked up once, and what cannot be reached."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from raw_server import raw_server
from vivavoce.errors import Fault
from vivavoce.wire import pool
from vivavoce.wire.http import Client, Limits
from vivavoce.wire.request import Origin

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A key and a certificate for localhost, signed by itself and good for nothing else."""


@pytest.fixture
def fresh_trust() -> Iterator[None]:
    pool.trusted.cache_clear()
    yield
    pool.trusted.cache_clear()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def certified() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


def address(port: int, scheme: str = "http", host: str = "localhost") -> str:
    return f"{scheme}://{host}:{port}/"


@pytest.mark.usefixtures("fresh_trust")
async def test_a_secure_connection_to_a_server_that_the_machine_trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    client = Client(Limits(timeout=5))
    async with raw_server(answer, certified()) as port:
        answers = await asyncio.gather(*(client.request("GET", address(port, "https")) for _ in range(3)))
        await client.close()
    assert [one.text for one in answers] == ["hello"] * 3


@pytest.mark.usefixtures("fresh_trust")
@pytest.mark.parametrize("host", ["localhost", "localhost.localdomain"])
async def test_a_server_that_cannot_prove_its_name_is_not_spoken_to(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if host != "localhost":
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

        async def looked_up(origin: Origin) -> pool.Addresses:
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", origin.port))]

        monkeypatch.setattr(pool, "looked_up", looked_up)
    client = Client(Limits(timeout=5))
    async with raw_server(answer, certified()) as port:
        with pytest.raises(Fault, match=r"no secure connection: .*certificate verify failed") as caught:
            await client.request("GET", address(port, "https", host))
        await client.close()
    assert (caught.value.kind, caught.value.retryable) == ("connection", False)


async def test_a_server_that_does_not_speak_tls() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    client = Client(Limits(timeout=5))
    async with raw_server(plain) as port:
        with pytest.raises(Fault, match="no secure connection: ") as caught:
            await client.request("GET", address(port, "https"))
        await client.close()
    assert (caught.value.kind, caught.value.retryable) == ("connection", False)


async def test_a_host_is_looked_up_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0
    real = pool.looked_up

    async def looked_up(origin: Origin) -> pool.Addresses:
        nonlocal times
        times += 1
        return await real(origin)

    monkeypatch.setattr(pool, "looked_up", looked_up)
    client = Client(Limits(timeout=5))
    async with raw_server(answer) as port:
        await asyncio.gather(*(client.request("GET", address(port)) for _ in range(20)))
        await client.close()
    assert times == 1


async def test_a_host_that_is_not_known_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0

    async def looked_up(origin: Origin) -> pool.Addresses:
        nonlocal times
        times += 1
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(pool, "looked_up", looked_up)
    client = Client(Limits(timeout=5))
    for _ in range(2):
        with pytest.raises(Fault, match=r"cannot connect: .*Name or service not known") as caught:
            await client.request("GET", "http://nowhere.example/")
        assert (caught.value.kind, caught.value.retryable) == ("connection", True)
    await client.close()
    assert times == 2


async def test_a_connection_that_nobody_used_for_long_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEPT", 0.01)
    came = 0

    async def counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        await answer(reader, writer)

    client = Client(Limits(timeout=5))
    async with raw_server(counting) as port:
        await client.request("GET", address(port))
        await asyncio.sleep(0.02)
        await client.request("GET", address(port))
        await client.close()
    assert came == 2
