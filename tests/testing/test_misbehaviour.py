from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from vivavoce.testing import LoopbackServer, misbehaviour


async def outcome(does: misbehaviour.Misbehaviour) -> tuple[int, str, str | None]:
    """Ask without any code of ours: the status, the body and Retry-After."""
    async with LoopbackServer(lambda body: does) as server, aiohttp.ClientSession() as session:
        timeout = aiohttp.ClientTimeout(total=0.5)
        async with session.post(f"{server.base_url}/chat/completions", json={}, timeout=timeout) as response:
            return response.status, await response.text(), response.headers.get("Retry-After")


async def test_statuses() -> None:
    assert (await outcome(misbehaviour.server_error()))[0] == 500
    assert (await outcome(misbehaviour.rate_limited(3)))[::2] == (429, "3")
    assert (await outcome(misbehaviour.rate_limited()))[::2] == (429, None)
    assert await outcome(misbehaviour.status(418, "short")) == (418, "short", None)


async def test_bodies_that_are_not_json() -> None:
    for does in (misbehaviour.html(), misbehaviour.broken_json()):
        status, text, _ = await outcome(does)
        assert status == 200
        with pytest.raises(ValueError):
            json.loads(text)


async def test_a_huge_body_has_its_size() -> None:
    assert len((await outcome(misbehaviour.huge(1_000_000)))[1]) == 1_000_000


async def test_a_reset_is_a_reset() -> None:
    with pytest.raises(aiohttp.ClientConnectionError):
        await outcome(misbehaviour.reset())


async def test_a_hanging_server_stops_with_the_test() -> None:
    async with LoopbackServer(lambda body: misbehaviour.hang()) as server, aiohttp.ClientSession() as session:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.post(server.url, json={}), 0.05)
    with pytest.raises(aiohttp.ClientConnectorError):
        async with aiohttp.ClientSession() as session:
            await session.post(server.url)
