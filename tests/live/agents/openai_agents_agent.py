import os

from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="none"))


@function_tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


desk = Agent("weather desk", instructions="Tell the weather.", tools=[weather], model=model)
agent = Agent("reception", instructions="Hand over.", handoffs=[desk], model=model)
