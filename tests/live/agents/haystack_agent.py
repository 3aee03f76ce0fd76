import os

from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


def model() -> OpenAIChatGenerator:
    return OpenAIChatGenerator(Secret.from_token("none"), model="m", api_base_url=os.environ["MODEL_URL"])


agent = Agent(chat_generator=model(), tools=[weather])
pipeline = Pipeline()
pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user("{{ question }}")], required_variables="*"))
pipeline.add_component("model", model())
pipeline.connect("prompt", "model")
