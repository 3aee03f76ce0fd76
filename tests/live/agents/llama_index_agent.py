import os

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.llms.openai_like import OpenAILike

model = OpenAILike(
    model="m",
    api_base=os.environ["MODEL_URL"],
    api_key="none",
    is_chat_model=True,
    is_function_calling_model=True,
    additional_kwargs={"stream_options": {"include_usage": True}},
)


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


agent = FunctionAgent(name="weather desk", description="Knows the weather.", tools=[weather], llm=model)
workflow = AgentWorkflow(
    agents=[FunctionAgent(name="weather desk", description="Knows it.", tools=[weather], llm=model)]
)
engine = SimpleChatEngine.from_defaults(
    llm=OpenAILike(model="m", api_base=os.environ["MODEL_URL"], api_key="none", is_chat_model=True)
)
