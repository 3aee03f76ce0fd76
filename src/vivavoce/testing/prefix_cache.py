"""`PrefixCache`: which part of a prompt a server that runs a model need not compute again, counted as vLLM does.

Source: "Automatic Prefix Caching" in vLLM's documentation. Memory is divided into blocks of 16 tokens. A block that is
full is known by its tokens and all tokens before it, from the moment a prompt is begun. What no prompt in work holds is
kept until its place is needed: what was not used for the longest time goes first, of one prompt its end before its
beginning. A prompt that finds no place waits, and those that came later wait behind it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import Any

BLOCK = 16
"""Tokens of a block."""
TOKEN = 4
"""Characters that count as a token, about as many as English text has; no tokenizer is asked."""


class PromptTooLong(ValueError):
    """A prompt needs more memory than there is."""


class PrefixCache:
    """The memory of a server for this many `tokens` of prompts; answers take no space in it.

    `prompt_tokens` counts the tokens of all prompts, and `cached_tokens` those of them that were there already.
    """

    def __init__(self, tokens: int) -> None:
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self._size = tokens // BLOCK
        self._block_uses = Counter[int]()
        self._free_blocks = OrderedDict[int, None]()
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @property
    def hit_rate(self) -> float:
        """The share of all tokens of prompts that need not be computed again."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @asynccontextmanager
    async def holding(self, prompt: str) -> AsyncGenerator[tuple[int, int]]:
        """Keep a prompt while it is answered; yields how many tokens it has, and how many were there already.

        Raises:
            PromptTooLong: there is less memory than it needs.
        """
        blocks = _blocks(prompt)
        tokens = -(-len(prompt) // TOKEN)
        if len(blocks) > self._size:
            raise PromptTooLong(
                f"the prompt has {tokens:,} tokens, but there is memory for only {self._size * BLOCK:,}"
            )
        async with self._turn:
            while (cached_blocks := self._take(blocks)) is None:
                self._freed.clear()
                await self._freed.wait()
        cached = max(
            0, min(cached_blocks * BLOCK, tokens - 1)
        )  # the last token is always computed, for the answer follows it
        self.prompt_tokens += tokens
        self.cached_tokens += cached
        try:
            yield tokens, cached
        finally:
            self._release(blocks)

    def count_cached(self, prompt: str) -> int:
        """Return how many tokens of a prompt are there now."""
        return self._count_blocks(_blocks(prompt)) * BLOCK

    def _count_blocks(self, blocks: Sequence[int]) -> int:
        """Return how many blocks, from the first, are there."""
        there = (block in self._block_uses or block in self._free_blocks for block in blocks)
        return sum(1 for _ in takewhile(bool, there))

    def _take(self, blocks: Sequence[int]) -> int | None:
        """Hold blocks, and return how many of them, from the first, were there; None where there is no place."""
        if len(self._block_uses) + sum(block not in self._block_uses for block in blocks) > self._size:
            return None
        count = self._count_blocks(blocks)
        for block in blocks:
            self._free_blocks.pop(block, None)
            self._block_uses[block] += 1
        while len(self._block_uses) + len(self._free_blocks) > self._size:
            self._free_blocks.popitem(last=False)
        return count

    def _release(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self._block_uses[block] -= 1
            if not self._block_uses[block]:
                del self._block_uses[block]
                self._free_blocks[block] = None
        self._freed.set()


def prompt_of(body: Mapping[str, Any]) -> str:
    """Return the text that a model reads of a request: its tools, which a chat template puts first, then its messages.

    How an answer is to look (`response_format`) is not part of it.
    """
    tools = [json.dumps(tool) for tool in body.get("tools") or ()]
    messages = [f"{message['role']}: {message.get('content')}" for message in body.get("messages", ())]
    return "\n".join([*tools, *messages])


def _blocks(prompt: str) -> list[int]:
    """Return the blocks that a prompt fills, each as a hash of its text and of all before it."""
    size = BLOCK * TOKEN
    hashes: list[int] = []
    before = 0
    for at in range(0, len(prompt) - size + 1, size):
        before = hash((before, prompt[at : at + size]))
        hashes.append(before)
    return hashes
