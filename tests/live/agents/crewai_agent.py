import os

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

model = LLM(model="openai/m", base_url=os.environ["MODEL_URL"], api_key="none")


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


agent = Agent(role="weather desk", goal="Tell the weather.", backstory="You know it.", llm=model, tools=[weather])
task = Task(description="So far:\n{history}\nUser: {message}", expected_output="A sentence.", agent=agent)
crew = Crew(agents=[agent], tasks=[task], verbose=True)
