"""An agent of A2A by its own package: a2a_agent.py PORT VERSION; it asks for a city where none is named."""

import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers.default_request_handler_v2 import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

PORT, VERSION = int(sys.argv[1]), sys.argv[2]
FIRST: dict[str, str] = {}


class Weather(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        text = context.get_user_input()
        city = next((city for city in ("Rome", "Oslo") if city in text), None)
        first = FIRST.setdefault(task.context_id, city or "")
        if "first" in text:
            await updater.complete(new_text_message(f"The first was {first}."))
        elif "fail" in text:
            await updater.failed(new_text_message("no sensor"))
        elif city is None:
            del FIRST[task.context_id]
            await updater.requires_input(new_text_message("Which city?"))
        else:
            await updater.add_artifact([new_text_part(f"It is sunny in {city}.")])
            await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


interface = AgentInterface(url=f"http://127.0.0.1:{PORT}/rpc", protocol_binding="JSONRPC", protocol_version=VERSION)
card = AgentCard(
    name="weather",
    description="Tells the weather.",
    version="1",
    supported_interfaces=[interface],
    capabilities=AgentCapabilities(streaming=False),
    default_input_modes=["text"],
    default_output_modes=["text"],
    skills=[AgentSkill(id="weather", name="weather", description="Tells the weather.", tags=["weather"])],
)
handler = DefaultRequestHandlerV2(Weather(), InMemoryTaskStore(), card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=PORT, log_level="warning")
