"""What a turn costs through our target beside the framework alone: an agent of Pydantic AI, a runnable of LangChain.

The model answers at once, so all that is measured is work; the times are the least of several rounds, of the processor.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from vivavoce.messages import AnyMessage, HumanMessage
from vivavoce.targets.given import as_target
from vivavoce.targets.target import Opening

CONVERSATIONS, TURNS, ROUNDS = 30, 3, 15
SAID = "Renew my loan"

agent = Agent(TestModel(custom_output_text="It is renewed."), name="loans", instructions="Renew loans.")


@agent.tool_plain
def renew(loan: str) -> str:
    """Renew a loan."""
    return f"{loan} is renewed"


prompt = ChatPromptTemplate(
    [("system", "Be kind."), MessagesPlaceholder("history", optional=True), ("human", "{question}")]
)
chain = prompt | FakeListChatModel(responses=["It is renewed."])


async def pydantic_alone() -> None:
    history: list[object] = []
    for _ in range(TURNS):
        result = await agent.run(SAID, message_history=history, conversation_id=uuid.uuid4().hex)  # pyright: ignore
        history = [*result.all_messages()]


async def langchain_alone() -> None:
    history: list[dict[str, str]] = []
    for _ in range(TURNS):
        config = {"configurable": {"thread_id": uuid.uuid4().hex}}
        reply = await chain.ainvoke({"question": SAID, "history": history}, config=config)  # pyright: ignore
        history += [{"role": "user", "content": SAID}, {"role": "assistant", "content": str(reply.content)}]


def through(thing: object) -> Callable[[], Awaitable[None]]:
    target = as_target(thing)

    async def hold() -> None:
        session = await target.open(Opening(uuid.uuid4().hex, "s"))
        messages: list[AnyMessage] = []
        for _ in range(TURNS):
            messages.append(HumanMessage(content=SAID))
            messages += (await session.send(messages)).messages
        await session.close()

    return hold


async def seconds(hold: Callable[[], Awaitable[None]]) -> float:
    started = time.process_time()
    for _ in range(CONVERSATIONS):
        await hold()
    return (time.process_time() - started) / CONVERSATIONS / TURNS


async def main() -> None:
    for name, alone, ours in (
        ("Pydantic AI", pydantic_alone, through(agent)),
        ("LangChain", langchain_alone, through(chain)),
    ):
        await seconds(alone), await seconds(ours)
        pairs = [(await seconds(alone), await seconds(ours)) for _ in range(ROUNDS)]
        bare, both = (min(times) for times in zip(*pairs, strict=True))
        print(f"{name}: {bare * 1000:.2f} ms a turn alone, {both / bare:.2f} of it through a target")


asyncio.run(main())
