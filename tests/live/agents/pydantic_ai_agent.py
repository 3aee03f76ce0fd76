import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=os.environ["MODEL_URL"], api_key="none"))
agent = Agent(model, instructions="Tell the weather.", name="weather desk")


@agent.tool_plain
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"
