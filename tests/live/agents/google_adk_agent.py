"""Google ADK wants Gemini's wire, so the requests are answered in it."""

import os
from functools import cached_property

from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.genai import Client
from google.genai.types import HttpOptions

os.environ["GOOGLE_API_KEY"] = "none"


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


class Loopback(Gemini):
    @cached_property
    def api_client(self) -> Client:
        return Client(api_key="none", http_options=HttpOptions(base_url=os.environ["MODEL_ROOT"]))


model = Loopback(model="gemini-m")
desk = LlmAgent(name="weather_desk", description="Knows the weather.", model=model, tools=[weather])
agent = LlmAgent(name="reception", model=model, sub_agents=[desk])
