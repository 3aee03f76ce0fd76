"""What a turn costs through our target beside the time that the framework itself takes in it.

An agent of Pydantic AI calls a tool in each turn, and a chain of LangChain fills a prompt; their models answer at once,
so all that is measured is work. Seconds are of the processor, both of the same turns: a busy machine changes little.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from vivavoce.messages import AnyMessage, HumanMessage
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Opening, Target

CONVERSATIONS, TURNS = 300, 3

agent = Agent(TestModel(custom_output_text="It is renewed."), name="loans", instructions="Renew loans.")


@agent.tool_plain
def renew(loan: str) -> str:
    """Renew a loan."""
    return f"{loan} is renewed"


prompt = ChatPromptTemplate(
    [("system", "Be kind."), MessagesPlaceholder("history", optional=True), ("human", "{question}")]
)
chain = prompt | FakeListChatModel(responses=["It is renewed."])


class Timed:
    """An object of a framework, with the seconds that one of its methods took."""

    def __init__(self, thing: Any, method: str) -> None:
        self._thing, self._method = thing, method
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._thing, name)
        if name != self._method:
            return result

        async def run(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return await result(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - started

        return run


async def hold(target: Target) -> None:
    session = await target.open(Opening(uuid.uuid4().hex, "s"))
    messages: list[AnyMessage] = []
    for _ in range(TURNS):
        messages.append(HumanMessage(content="Renew my loan"))
        messages += (await session.send(messages)).messages
    await session.close()


async def main() -> None:
    for name, thing in (("Pydantic AI", Timed(agent, "run")), ("LangChain", Timed(chain, "ainvoke"))):
        target = as_target(thing, name)
        for _ in range(10):
            await hold(target)
        thing.seconds, started = 0.0, time.process_time()
        for _ in range(CONVERSATIONS):
            await hold(target)
        whole = time.process_time() - started
        each = 1000 / CONVERSATIONS / TURNS
        times = f"{thing.seconds * each:.2f} ms a turn in the framework, {whole * each:.2f} ms with the target"
        print(f"{name}: {times}: {whole / thing.seconds:.2f} times as much")


asyncio.run(main())
