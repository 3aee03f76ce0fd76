"""How sessions open and end connections: secure ones, look-ups of hosts, other event loops, clients nobody closed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import ResolveResult

from raw_server import raw_server
from vivavoce.errors import Fault, TargetFault
from vivavoce.testing import LoopbackServer
from vivavoce.wire import session
from vivavoce.wire.http import Client, Limits

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A key and a certificate for localhost, signed by itself and good for nothing else."""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def build_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


def address(port: int, scheme: str = "http", host: str = "localhost") -> str:
    return f"{scheme}://{host}:{port}/"


REQUEST = """
import asyncio, sys
from vivavoce.wire.http import Client

async def ask(url):
    client = Client()
    try:
        answers = await asyncio.gather(*(client.request("GET", url) for _ in range(3)))
        return [answer.text for answer in answers]
    except Exception as error:
        return str(error), error.kind, error.retryable
    finally:
        await client.close()

print(asyncio.run(ask(sys.argv[1])))
"""


async def ask_elsewhere(port: int, *, trusts: bool, host: str = "localhost") -> str:
    """Return what a new process prints that asks over TLS; what it trusts is read as it starts."""
    monkey = "" if host == "localhost" else f"import socket\nsocket.getaddrinfo = {LOCAL}\n"
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", monkey + REQUEST, address(port, "https", host)),
        env={"SSL_CERT_FILE": str(CERTIFICATE)} if trusts else {},
        stdout=subprocess.PIPE,
    )
    return (await asking.communicate())[0].decode()


LOCAL = "lambda host, port, *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.0.1', port))]"
"""A look-up that finds every host on this machine."""


async def test_a_secure_connection_to_a_server_that_the_machine_trusts() -> None:
    async with raw_server(answer, build_context()) as port:
        assert await ask_elsewhere(port, trusts=True) == "['hello', 'hello', 'hello']\n"


@pytest.mark.parametrize(("host", "trusts"), [("localhost", False), ("localhost.localdomain", True)])
async def test_a_server_that_cannot_prove_its_name_is_not_spoken_to(host: str, trusts: bool) -> None:
    async with raw_server(answer, build_context()) as port:
        failure = await ask_elsewhere(port, trusts=trusts, host=host)
    assert "no secure connection: " in failure
    assert "certificate verify failed" in failure
    assert "'connection', False" in failure


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
    real = aiohttp.ThreadedResolver.resolve

    async def resolve(
        self: aiohttp.ThreadedResolver, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        nonlocal times
        times += 1
        return await real(self, host, port, family)

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
    client = Client(Limits(timeout=5))
    async with raw_server(answer) as port:
        await asyncio.gather(*(client.request("GET", address(port)) for _ in range(20)))
        await client.close()
    assert times == 1


async def test_a_host_that_is_not_known_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0

    async def resolve(self: aiohttp.ThreadedResolver, *_: object, **__: object) -> list[ResolveResult]:
        nonlocal times
        times += 1
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
    client = Client(Limits(timeout=5))
    for _ in range(2):
        with pytest.raises(Fault, match=r"cannot connect: .*Name or service not known") as caught:
            await client.request("GET", "http://nowhere.example/")
        assert (caught.value.kind, caught.value.retryable) == ("connection", True)
    await client.close()
    assert times == 2


async def test_a_connection_that_nobody_used_for_long_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEEP_ALIVE_SECONDS", 0.01)
    count = 0

    async def counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await answer(reader, writer)

    client = Client(Limits(timeout=5))
    async with raw_server(counting) as port:
        await client.request("GET", address(port))
        await asyncio.sleep(0.02)
        await client.request("GET", address(port))
        await client.close()
    assert count == 2


async def test_requests_of_a_client_that_is_closed_fail_and_are_not_cancelled() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    client = Client(Limits(concurrency=1, timeout=5))
    async with raw_server(silence) as port:
        requests = [asyncio.create_task(client.request("POST", address(port))) for _ in range(3)]
        await asyncio.sleep(0.05)
        await client.close()
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert [(type(outcome), str(outcome).count("connection broke")) for outcome in outcomes] == [(TargetFault, 1)] * 3


async def test_a_proxy_that_refuses_a_tunnel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    client = Client(Limits(timeout=5))
    async with raw_server(refuse) as port:
        monkeypatch.setenv("https_proxy", address(port))
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(Fault, match="cannot connect: the proxy answered 407 Proxy Authentication Required"):
            await client.request("GET", "https://bot.example/")
        await client.close()


ABANDON = {
    "in a loop that ends": "asyncio.run(ask())",
    "in a loop that nobody closes": "asyncio.new_event_loop().run_until_complete(ask())",
    "in one loop after the other": "kept = Client()\nfor _ in range(3): asyncio.run(ask(kept))",
    "in a loop that goes on": "asyncio.run(ask_twice())",
    "in the loop of our commands": "from vivavoce.pacing.loops import run\nrun(ask())",
}


@pytest.mark.parametrize("name", ABANDON)
def test_a_client_that_nobody_closes_ends_without_a_word(name: str) -> None:
    """No `Unclosed client session` in the terminal of a user who calls a metric of ours in a script."""
    code = f"""
import asyncio, gc, sys
from vivavoce.wire.http import Client

async def ask(client=None):
    print((await (client or Client()).request("GET", sys.argv[1])).text)

async def ask_twice():
    await ask()
    gc.collect()
    await ask()

{ABANDON[name]}
gc.collect()
"""
    with LoopbackServer(lambda body: "hello") as server:
        done = subprocess.run([sys.executable, "-c", code, server.url], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"hello"}
    assert done.stderr == ""
