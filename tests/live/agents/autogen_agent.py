import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient

info = ModelInfo(vision=False, function_calling=True, json_output=True, family="unknown", structured_output=False)
model = OpenAIChatCompletionClient(model="m", base_url=os.environ["MODEL_URL"], api_key="none", model_info=info)


async def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


def desk() -> AssistantAgent:
    return AssistantAgent("weather_desk", model, tools=[weather], reflect_on_tool_use=True, model_client_stream=True)


agent = desk()
team = RoundRobinGroupChat(
    [desk()], termination_condition=TextMessageTermination("weather_desk") | MaxMessageTermination(9)
)
