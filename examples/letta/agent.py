"""Makes a fresh agent for every conversation, so that none remembers the guest of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from letta_client import AsyncLetta


async def make_agent(client: AsyncLetta, sample: Any) -> str:
    """Make an agent and return its id; `sample.agent_args` is what the row of the dataset says about it."""
    agent = await client.agents.create(
        name=f"concierge-{sample.id}",
        model=sample.agent_args.get("model", "openai/gpt-4.1-mini"),
        embedding="openai/text-embedding-3-small",
        memory_blocks=[
            {"label": "persona", "value": "I am the concierge of a small hotel. I am brief and I remember my guests."},
            {"label": "human", "value": "I know nothing about this guest yet."},
        ],
    )
    return agent.id
