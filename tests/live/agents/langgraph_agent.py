import os
import sys

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


model = ChatOpenAI(model="m", base_url=os.environ["MODEL_URL"], api_key="none").bind_tools([weather])


chain = ChatPromptTemplate(
    [("system", "Tell the weather."), MessagesPlaceholder("history"), ("human", "{question}")]
) | (ChatOpenAI(model="m", base_url=os.environ["MODEL_URL"], api_key="none"))


async def call_model(state: MessagesState):
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", call_model)
graph.add_node("tools", ToolNode([weather]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")

agent = graph.compile(checkpointer=InMemorySaver(), name="weather desk")


def ends_the_program(state: MessagesState):
    sys.exit(0)


ending = StateGraph(MessagesState).add_node("n", ends_the_program).add_edge(START, "n").compile(name="ending")
forgetful = graph.compile(name="weather desk")
