from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.testing import LoopbackServer, PrefixCache
from vivavoce.testing.prefix_cache import BLOCK, TOKEN, PromptTooLong, prompt_of


def text(*blocks: str) -> str:
    """Return a text of whole blocks, each of one letter."""
    return "".join(letter * BLOCK * TOKEN for letter in blocks)


async def read(cache: PrefixCache, prompt: str) -> int:
    """Return how many tokens of a prompt were there already."""
    async with cache.holding(prompt) as (_, cached):
        return cached


async def test_only_whole_blocks_of_a_common_beginning_count() -> None:
    cache = PrefixCache(1_000)
    assert await read(cache, text("a", "b") + "xyz") == 0
    assert await read(cache, text("a", "b") + "xyz") == 2 * BLOCK
    assert await read(cache, text("a", "c", "b")) == BLOCK
    assert await read(cache, text("b")) == 0
    assert await read(cache, text("a")[:-1]) == 0


async def test_the_last_token_is_always_computed() -> None:
    cache = PrefixCache(1_000)
    await read(cache, text("a", "b"))
    assert await read(cache, text("a", "b")) == 2 * BLOCK - 1
    assert cache.hit_rate == pytest.approx((2 * BLOCK - 1) / (4 * BLOCK))


async def test_prompts_that_are_read_at_the_same_time_share() -> None:
    cache = PrefixCache(1_000)
    async with cache.holding(text("a", "b")) as (tokens, cached):
        assert (tokens, cached) == (2 * BLOCK, 0)
        assert await read(cache, text("a", "b", "c")) == 2 * BLOCK


async def test_what_was_not_used_for_the_longest_time_goes_first_and_the_end_of_a_prompt_before_its_beginning() -> None:
    cache = PrefixCache(4 * BLOCK)
    for prompt in (text("a", "b"), text("c", "d"), text("e")):
        await read(cache, prompt)
    assert await read(cache, text("a", "b")) == BLOCK
    assert await read(cache, text("d")) == 0


async def test_a_prompt_waits_for_a_place_and_later_ones_behind_it() -> None:
    cache, begun = PrefixCache(3 * BLOCK), list[str]()

    async def hold(*blocks: str) -> None:
        async with cache.holding(text(*blocks)):
            begun.append(blocks[0])
            await asyncio.sleep(1)

    async with asyncio.TaskGroup() as group:
        for blocks in ("ab", "cd", "e"):
            group.create_task(hold(*blocks))
        await asyncio.sleep(0.5)
        assert begun == ["a"]
    assert begun == ["a", "c", "e"]


async def test_a_prompt_that_can_never_have_a_place_is_refused() -> None:
    with pytest.raises(PromptTooLong, match="the prompt has 48 tokens, but there is memory for only 32"):
        await read(PrefixCache(2 * BLOCK), text("a", "b", "c"))


@given(st.lists(st.text("ab", max_size=4), max_size=30), st.integers(4, 40))
async def test_it_keeps_no_more_than_it_has_place_for_and_counts_no_more_than_was_seen(
    prompts: list[str], size: int
) -> None:
    cache, seen = PrefixCache(size * BLOCK), set[str]()
    for prompt in prompts:
        known = max((n for n in range(len(prompt) + 1) if prompt[:n] in seen), default=0)
        cached = await read(cache, text(*prompt))
        assert cached <= known * BLOCK
        if size > 4 * len(prompts):
            assert cached == max(0, min(known * BLOCK, len(prompt) * BLOCK - 1))
        seen |= {prompt[:n] for n in range(1, len(prompt) + 1)}


def test_tools_stand_before_the_messages_and_the_form_of_the_answer_nowhere() -> None:
    message = {"role": "user", "content": "hi"}
    body = {"messages": [message], "tools": [{"type": "function"}], "response_format": {"type": "json_object"}}
    assert prompt_of(body) == '{"type": "function"}\nuser: hi'


def post(server: LoopbackServer, content: str) -> Any:
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    with urllib.request.urlopen(f"{server.base_url}/chat/completions", data=body, timeout=10) as response:
        return json.loads(response.read())


def test_a_server_says_what_it_had_already_and_refuses_what_is_too_long() -> None:
    with LoopbackServer(lambda body: "ok", prefixes=PrefixCache(10 * BLOCK)) as server:
        first, second = (post(server, text("a", "b"))["usage"] for _ in range(2))
        assert first["prompt_tokens"] == second["prompt_tokens"] == 2 * BLOCK + 2
        assert first["prompt_tokens_details"]["cached_tokens"] == 0
        assert second["prompt_tokens_details"]["cached_tokens"] == 2 * BLOCK
        with pytest.raises(HTTPError, match="400"):
            post(server, text(*"abcdefghijk"))
