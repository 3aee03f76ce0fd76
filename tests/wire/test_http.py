from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import Fault, ModelFault, RateLimited, TargetFault, UsageError
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.wire.http import Client, Limits, checked_url, is_loopback, retry_after


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client(Limits(timeout=5, size=1_000_000))
    yield client
    await client.close()


async def failure(client: Client, url: str, *, repeatable: bool = False) -> Fault:
    with pytest.raises(Fault) as caught:
        (await client.request("POST", url, b"{}", repeatable=repeatable)).json()
    return caught.value


async def test_an_answer_is_read_as_json(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: {"got": body}
    answer = await client.request("POST", server.url, b'{"a": 1}', {"X-Trace": "7"})
    assert answer.json() == {"got": {"a": 1}}
    assert server.requests[0].headers["X-Trace"] == "7"


@pytest.mark.parametrize("does", [misbehaviour.html(), misbehaviour.broken_json()])
async def test_a_body_that_is_not_json_is_kept_as_evidence(
    server: LoopbackServer, client: Client, does: misbehaviour.Misbehaviour
) -> None:
    server.answer = lambda body: does
    fault = await failure(client, server.url, repeatable=True)
    assert (fault.kind, fault.retryable) == ("format", False)
    assert fault.evidence in (
        "<!doctype html><title>Sign in</title><p>Please sign in.</p>",
        '{"choices": [{"message": {"role": "assistant", "content": "Hel',
    )


async def test_a_huge_answer_is_not_read_to_its_end(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.huge(100_000_000)
    fault = await failure(client, server.url)
    assert fault.kind == "size"
    assert "larger than 1,000,000 bytes" in str(fault)
    assert fault.evidence is not None
    assert fault.evidence.startswith("blah blah")
    assert len(fault.evidence) < 4100


async def test_a_rate_limit_says_how_long_to_wait(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.rate_limited(2.5)
    fault = await failure(client, server.url)
    assert isinstance(fault, RateLimited)
    assert (fault.retry_after, fault.retryable) == (2.5, True)
    assert "rate limit reached" in (fault.evidence or "")


async def test_an_overloaded_server_that_says_when_to_come_back_is_a_rate_limit(
    server: LoopbackServer, client: Client
) -> None:
    server.answer = lambda body: misbehaviour.status(503, headers={"Retry-After": "1"})
    assert isinstance(await failure(client, server.url), RateLimited)


async def test_a_server_error_is_tried_again_only_where_that_does_no_harm(
    server: LoopbackServer, client: Client
) -> None:
    server.answer = lambda body: misbehaviour.server_error()
    once, again = await failure(client, server.url), await failure(client, server.url, repeatable=True)
    assert (once.kind, once.retryable, again.retryable) == ("http", False, True)
    assert "answered 500" in str(once)


async def test_a_client_error_is_never_tried_again(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.status(401, "no such key")
    fault = await failure(client, server.url, repeatable=True)
    assert (fault.kind, fault.evidence, fault.retryable) == ("http", "no such key", False)


async def test_a_redirect_is_not_followed_but_named(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.status(307, headers={"Location": f"{server.url}/elsewhere?key=k"})
    fault = await failure(client, server.url)
    assert f"to '{server.url}/elsewhere'" in str(fault)
    assert len(server.requests) == 1


async def test_a_reset_connection_is_the_targets_failure(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.reset()
    once, again = await failure(client, server.url), await failure(client, server.url, repeatable=True)
    assert (once.kind, once.retryable, again.retryable) == ("connection", False, True)


async def test_a_refused_connection_is_always_worth_another_try(client: Client) -> None:
    async with LoopbackServer() as loopback_server:
        url = loopback_server.url
    fault = await failure(client, url)
    assert (fault.kind, fault.retryable) == ("connection", True)
    assert "cannot connect" in str(fault)


async def test_an_answer_that_is_not_http_is_named(client: Client) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"220 mail.example ESMTP ready\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as mail:
        fault = await failure(client, f"http://127.0.0.1:{mail.sockets[0].getsockname()[1]}")
    assert fault.kind == "format"
    assert "is not HTTP" in str(fault)


async def test_a_hanging_server_is_given_up(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.hang()
    client = Client(Limits(timeout=0.05))
    fault = await failure(client, server.url, repeatable=True)
    assert (fault.kind, fault.retryable) == ("timeout", True)
    assert "no answer within 0.05 s" in str(fault)
    await client.close()


async def test_a_cancellation_at_the_moment_of_the_time_limit_stays_a_cancellation(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.hang()
    client, loop = Client(Limits(timeout=60)), asyncio.get_running_loop()
    request = asyncio.create_task(client.request("POST", server.url, b"{}"))
    await asyncio.sleep(0.05)
    later, cancellations = loop.time() + 61, list[int]()
    loop.call_soon(request.cancel)
    loop.call_at(later, lambda: cancellations.append(request.cancelling()))
    with pytest.MonkeyPatch.context() as patch:  # in its next round, the loop finds the time limit reached as well
        patch.setattr(loop, "time", lambda: later)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await request
    assert cancellations == [2], "the caller cancelled, and so did the time limit"
    assert request.cancelled()
    await client.close()


async def test_a_request_can_be_cancelled(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.hang()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.request("POST", server.url, b"{}"), 0.05)


async def test_secrets_that_come_back_are_cut_out(server: LoopbackServer) -> None:
    client = Client(secrets=["sk-very-secret-key"])
    server.answer = lambda body: misbehaviour.status(401, "wrong key sk-very-secret-key")
    fault = await failure(client, f"{server.url}/sk-very-secret-key?key=sk-very-secret-key")
    assert fault.evidence == "wrong key ***"
    assert "sk-very-secret-key" not in str(fault)
    server.answer = lambda body: "your key is sk-very-secret-key"
    assert (await client.request("GET", server.url)).text == "your key is ***"
    await client.close()


async def test_a_query_and_a_password_do_not_reach_a_message(server: LoopbackServer, client: Client) -> None:
    server.answer = lambda body: misbehaviour.server_error()
    fault = await failure(client, server.url.replace("http://", "http://me:pass@") + "/chat?key=k")
    assert str(fault) == f"POST {server.url}/chat answered 500 Internal Server Error"


async def test_the_caller_says_whose_failure_it_is(server: LoopbackServer) -> None:
    client = Client(fault=ModelFault)
    server.answer = lambda body: misbehaviour.server_error()
    assert isinstance(await failure(client, server.url), ModelFault)
    server.answer = lambda body: misbehaviour.rate_limited()
    assert (await failure(client, server.url)).blame == "judge"
    server.answer = lambda body: misbehaviour.html()
    assert isinstance(await failure(client, server.url), ModelFault)
    await client.close()


async def test_as_many_connections_as_the_limit_and_no_more(server: LoopbackServer) -> None:
    server.delay = 0.002
    server.answer = lambda body: "ok"
    client = Client(Limits(concurrency=8))
    await asyncio.gather(*(client.request("GET", server.url) for _ in range(40)))
    assert (server.max_in_flight, server.connections) == (8, 8)
    await client.close()


async def test_a_proxy_is_used_for_other_hosts_only(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    server.answer = lambda body: "from the proxy"
    client = Client()
    assert (await client.request("GET", "http://bot.example/chat")).text == "from the proxy"
    assert server.requests[0].headers["Host"] == "bot.example"
    async with LoopbackServer() as bot:
        bot.answer = lambda body: "from the bot"
        assert (await client.request("GET", bot.url)).text == "from the bot"
    await client.close()


def test_a_client_serves_one_event_loop_after_the_other() -> None:
    client = Client()

    async def ask() -> str:
        answer = await client.request("GET", server.url)
        await client.close()
        return answer.text

    with LoopbackServer(lambda body: "hello") as server:
        assert [asyncio.run(ask()), asyncio.run(ask())] == ["hello", "hello"]


def test_retry_after_as_seconds_or_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after("3") == 3
    assert 55 < (retry_after(in_a_minute) or 0) <= 60
    assert retry_after("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert retry_after(None) is None


@given(st.text())
def test_any_retry_after_is_none_or_seconds(value: str) -> None:
    seconds = retry_after(value)
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/x", "http://", "http://host:99999", "http://[::1"])
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"base_url: .* is not a web address"):
        checked_url(url, "base_url")


@pytest.mark.parametrize("url", ["http://me:s3cret@host/v1", "https://s3cret@host", "http://me:s3/cret@host"])
def test_a_password_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="base_url: ") as caught:
        checked_url(url, "base_url")
    assert "s3" not in str(caught.value)


def test_loopback_addresses_are_known() -> None:
    here = ["http://localhost:1", "http://127.0.0.2/x", "http://[::1]:80", "https://bot.localhost"]
    there = ["http://10.0.0.1", "https://example.org", "http://localhost.example.org"]
    assert [is_loopback(url) for url in here + there] == [True] * 4 + [False] * 3


def test_the_default_failure_is_the_targets() -> None:
    assert Client().fault is TargetFault


async def test_a_short_key_may_be_a_word_of_the_answer(server: LoopbackServer) -> None:
    client = Client(secrets=["test"])
    server.answer = lambda body: "this is a test"
    assert "this is a test" in (await client.request("GET", server.url)).text
    await client.close()


def test_threads_share_a_client_each_with_connections_of_its_own() -> None:
    client = Client()

    async def ask() -> str:
        try:
            return (await client.request("GET", server.url)).text
        finally:
            await client.close()

    with LoopbackServer(lambda body: "hello") as server, ThreadPoolExecutor(8) as pool:
        requests = [pool.submit(asyncio.run, ask()) for _ in range(80)]
        assert [thread.result(timeout=60) for thread in requests] == ["hello"] * 80
