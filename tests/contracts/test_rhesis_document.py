"""The code that the tester's design document shows, with other imports and nothing else changed, runs.

Each block is what its users write; the document's `rhesis.sdk.…` and `rhesis.penelope` are `vivavoce.…`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stage import NO_FAULT, asks_for, say, verdict
from vivavoce.models.model import Request
from vivavoce.penelope import EndpointTarget
from vivavoce.testing import LoopbackServer, ScriptedModel

REPLY = "We offer 30-day returns for unopened items in original packaging."
CONVERSATION = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi! How can I help?"},
    {"role": "user", "content": "I need insurance info"},
    {"role": "assistant", "content": "We offer auto, home, and life insurance."},
]

DEFAULT_METRIC = """
from vivavoce.penelope import PenelopeAgent, EndpointTarget
from vivavoce.models import VertexAILLM

agent = PenelopeAgent(model=VertexAILLM())  # Uses default GoalAchievementJudge

result = agent.execute_test(
    target=EndpointTarget(endpoint_id="chatbot-prod"),
    instructions="Test multi-turn conversation",
    goal="Customer receives complete information about products",
)

print(f"Goal achieved: {result.goal_achieved}")
"""
CUSTOM_METRIC = """
from vivavoce.metrics import GoalAchievementJudge

custom_metric = GoalAchievementJudge(
    categories=["failed", "passed", "exceeded_expectations"],
    passing_categories=["passed", "exceeded_expectations"],
    model=model,
)

agent = PenelopeAgent(model=model, goal_metric=custom_metric)
result = agent.execute_test(target, instructions, goal)
print(result.goal_achieved)
"""
STANDALONE = """
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.models import AnthropicLLM

metric = GoalAchievementJudge(model=AnthropicLLM())

result = metric.evaluate(
    conversation_history=conversation,
    goal="Customer learns about available insurance types",
)

print(result.details["is_successful"])
print(result.details["reasoning"])
print(result.details["evidence"])
"""
BATCH = """
import json
from vivavoce.metrics import GoalAchievementJudge

metric = GoalAchievementJudge(model=model)

with open("conversations.json") as f:
    conversations = json.load(f)

results = []
for conv in conversations:
    result = metric.evaluate(
        conversation_history=conv["messages"],
        goal=conv["goal"],
    )
    results.append({
        "conversation_id": conv["id"],
        "achieved": result.details["is_successful"],
        "confidence": result.details["confidence"],
        "evidence": result.details["evidence"],
    })

success_rate = sum(r["achieved"] for r in results) / len(results)
print(f"Success rate: {success_rate:.1%}")
"""
PLATFORM = """
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.metrics.types import ConversationHistory

history = ConversationHistory.from_dict_list([
    {"role": turn.role, "content": turn.message}
    for turn in test_result.conversation
])
metric = GoalAchievementJudge(model=get_default_model())
result = metric.evaluate(conversation_history=history, goal=test_result.goal)
print(result.details["confidence"], result.details["evidence"])
"""
TO_CONVERSATION = """
from vivavoce.metrics.types import ConversationHistory, ConversationTurn

def _to_conversation_format(turns: List[Turn]) -> ConversationHistory:
    conversation_turns: List[ConversationTurn] = []
    for turn in turns:
        if turn.tool_name == "send_message_to_target":
            message = turn.tool_arguments.get("message", "")
            if message:
                conversation_turns.append(ConversationTurn(role="user", content=message))
            result = turn.tool_result
            if isinstance(result, dict) and result.get("success"):
                response = result.get("output", {})
                response_text = response.get("response", "") if isinstance(response, dict) else str(response)
                if response_text:
                    conversation_turns.append(ConversationTurn(role="assistant", content=response_text))
    return ConversationHistory(turns=conversation_turns)

history = _to_conversation_format(tested.history)
print(all(isinstance(turn, ConversationTurn) for turn in history.turns))
print(history.to_dict_list())
"""
QUALITY = """
from vivavoce.metrics import (
    GoalAchievementJudge,
    ContextRetentionMetric,
    ConversationCoherenceMetric,
    SafetyMetric,
)

agent = PenelopeAgent(
    model=VertexAILLM(),
    goal_metric=GoalAchievementJudge(passing_categories=["fully_achieved"], model=VertexAILLM()),
    evaluation_metrics=[
        ContextRetentionMetric(model=VertexAILLM(), threshold=0.7),
        ConversationCoherenceMetric(model=VertexAILLM(), threshold=0.8),
        SafetyMetric(model=VertexAILLM()),
    ],
)

result = agent.execute_test(target=endpoint, goal="Complete 4-turn conversation with context retention")

for metric_name, metric_result in result.evaluation.items():
    if metric_name != 'goal_achievement':
        score = metric_result.score
        passed = metric_result.details.get('is_successful', 'N/A')

quality_metrics = [r for n, r in result.evaluation.items() if n != 'goal_achievement']
all_passed = all(m.details.get('is_successful', False) for m in quality_metrics)
print(sorted(result.evaluation), all_passed)
"""
POSITIONAL_MODELS = """
agent = PenelopeAgent(
    model=model,
    goal_metric=GoalAchievementJudge(model),
    evaluation_metrics=[
        ToxicityMetric(model),
        PromptInjectionMetric(model),
        DataLeakageMetric(model),
    ],
    evaluate_during_test=True,
)
print([metric.name for metric in agent.evaluation_metrics])
"""
CUSTOM_TOOLS = '''
class CustomDomainAnalyzer(Tool):
    """Look for the domain's terms in a reply."""

    def execute(self, response_text: str, analysis_focus: str, context: str = ""):
        return {"findings": ["a term"]}

class SpecializedExtractor(Tool):
    """Extract the amounts in a reply."""

    def execute(self, response_text: str, extraction_target: str):
        return ToolResult(success=True, output={"amounts": ["30"]})

agent = PenelopeAgent(
    model=model,
    analysis_model=VertexAILLM("gemini-pro"),
    enable_analysis_tools=False,
    custom_tools=[CustomDomainAnalyzer(), SpecializedExtractor()],
)
for tool in agent.setup.tools[1:]:
    print(tool.name, tool.description, sorted(tool.parameters["properties"]), tool.parameters["required"])
'''
CONDITIONS = """
class EnoughSaid(StoppingCondition):
    def should_stop(self, state: TestState) -> bool:
        return len(state.turns) >= 2

agent = PenelopeAgent(model=model, goal_metric=never, conditions=[EnoughSaid()], review_tester=False)
result = agent.execute_test(target, instructions=None, goal=goal, max_turns=None, context=None, files=None)
print(result.turns_used, result.stopped_by, result.stop_reason)
"""
ANALYSIS = """
found = AnalyzeTool().execute(
    response_text="We offer 30-day returns...",
    analysis_focus="Check if timeframe and conditions are clearly stated",
).output
print(any("policy language" in finding for finding in found["findings"]))
found = ExtractTool().execute(
    response_text=REPLY,
    extraction_target="refund timeframe and conditions",
).output
print(found["numbers"], found["relevant_content"])
"""
RESULTS = """
made = TestResult(
    status=TestStatus.SUCCESS,
    goal_achieved=True,
    turns_used=0,
    findings=[],
    history=[],
    metadata={},
    start_time=None,
    end_time=None,
    evaluation={"goal_achievement": MetricResult(score="error", details={"error": "boom"})},
)
print(made.goal_achieved, made.get_metric_result("goal_achievement").score, made.all_metrics_passed())
response = GoalAchievementResponse(
    achievement_level="fully_achieved", confidence=0.9, reasoning="So it is.", evidence=[], missing_criteria=[]
)
print(response.achievement_level)
"""
OPTIONAL = """
config = MetricConfig(
    class_name="Own", name=None, description=None, score_type="categorical", metric_type="conversation",
    requires_ground_truth=False, requires_context=False,
)
judge = GoalAchievementJudge(
    categories=None, passing_categories=None, name=None, description=None, model=None, settings=None, scope=None
)
print(config.score_type, judge.name, judge.passing_categories)
agent = PenelopeAgent(
    model=model, tools=None, max_iterations=20, timeout_seconds=None, goal_metric=None, evaluation_metrics=None
)
print(agent.max_turns)
"""
MESSAGES = """
for turn in tested.history:
    print(turn.assistant_message.role, turn.assistant_message.tool_calls[0].function.name)
    break
openai_messages = [msg.model_dump(exclude_none=True) for turn in tested.history
                   for msg in [turn.assistant_message, turn.tool_message]]
print([message["role"] for message in openai_messages[:2]])
"""
STORED = """
from vivavoce.metrics import evaluate_test_result
from vivavoce.run.kept_tests import keep_tests

keep_tests(tested, name="test-123")
comprehensive_eval = evaluate_test_result(
    test_result_id="test-123",
    metrics=[
        GoalAchievementJudge(model),
        ContextRetentionMetric(model),
        CoherenceMetric(model),
        SafetyMetric(model),
    ]
)
print(sorted(comprehensive_eval), comprehensive_eval.get_metric("goal_achievement").passed)
"""
BLOCKS = {
    "default metric": (DEFAULT_METRIC, "Goal achieved: True\n"),
    "custom metric": (CUSTOM_METRIC, "True\n"),
    "standalone": (STANDALONE, "True\nso it is\n[]\n"),
    "batch": (BATCH, "Success rate: 100.0%\n"),
    "platform": (PLATFORM, "0.9 []\n"),
    "conversation": (
        TO_CONVERSATION,
        f"True\n{[{'role': 'user', 'content': 'What do you offer?'}, {'role': 'assistant', 'content': REPLY}]}\n",
    ),
    "quality": (
        QUALITY,
        "['coherence', 'context_retention', 'goal_achievement', 'safety'] True\n",
    ),
    "positional models": (POSITIONAL_MODELS, "['toxicity', 'prompt_injection', 'data_leakage']\n"),
    "custom tools": (
        CUSTOM_TOOLS,
        "custom_domain_analyzer Look for the domain's terms in a reply. "
        "['analysis_focus', 'context', 'response_text'] ['response_text', 'analysis_focus']\n"
        "specialized_extractor Extract the amounts in a reply. "
        "['extraction_target', 'response_text'] ['response_text', 'extraction_target']\n",
    ),
    "conditions": (CONDITIONS, "2 enough_said the condition enough_said holds\n"),
    "analysis": (ANALYSIS, f"True\n['30'] ['{REPLY}']\n"),
    "results": (RESULTS, "True error False\nfully_achieved\n"),
    "optional": (OPTIONAL, "categorical goal_achievement ['fully_achieved']\n20\n"),
    "stored": (STORED, "['coherence', 'context_retention', 'goal_achievement', 'safety'] True\n"),
    "messages": (MESSAGES, "assistant send_message_to_target\n['assistant', 'tool']\n"),
}
IMPORTS = """
from typing import *
from vivavoce.metrics import *
from vivavoce.models import VertexAILLM, AnthropicLLM, get_default_model
from vivavoce.penelope import *
from vivavoce.penelope.tools import *
"""


def play(request: Request) -> Any:
    """Ask one question, and judge everything as good."""
    if request.schema is None:
        return say("What do you offer?")
    if asks_for(request, "faults"):
        return NO_FAULT
    assert isinstance(request.schema, type)
    schema = request.schema.model_json_schema()
    fields = schema["properties"]
    if "criteria" in fields or "achievement_level" in fields:
        levels = fields.get("achievement_level", {}).get("enum")
        return {**verdict(True), **({"achievement_level": levels[-1]} if levels else {})}
    return good(schema, schema.get("$defs", {}))


def good(schema: dict[str, Any], parts: dict[str, Any]) -> Any:
    """Return the best answer that a schema allows."""
    if "$ref" in schema:
        return good(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "enum" in schema:
        return next((one for one in ("yes", "no_occasion") if one in schema["enum"]), schema["enum"][0])
    if schema["type"] == "object":
        return {name: good(part, parts) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        item = good(schema["items"], parts) if schema.get("minItems") else None
        names = parts.get(schema["items"].get("$ref", "").rpartition("/")[2], {}).get("properties", {}).get("item", {})
        if "enum" in names:
            return [{**good(schema["items"], parts), "item": one} for one in names["enum"]]
        return [] if item is None else [item] * schema["minItems"]
    return {"string": "so it is", "boolean": True}.get(schema["type"], schema.get("minimum", 0))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIVAVOCE_JUDGE", "vertex:gemini")
    monkeypatch.setenv("VIVAVOCE_TESTER", "anthropic:claude")
    opened: list[str] = []

    def open_scripted(name: str, **how: object) -> ScriptedModel:
        opened.append(name)
        return ScriptedModel(play, name)

    for place in ("custom", "names"):
        monkeypatch.setattr(f"vivavoce.models.{place}.open_model", open_scripted)
    row = {"id": "c-1", "goal": "Learn about insurance", "messages": CONVERSATION}
    (tmp_path / "conversations.json").write_text(json.dumps([row]))
    with LoopbackServer(lambda body: {"reply": REPLY}) as server:
        (tmp_path / "endpoints.yaml").write_text(f"chatbot-prod: {server.url}/chat\n")
        names: dict[str, Any] = {"REPLY": REPLY, "conversation": CONVERSATION, "model": ScriptedModel(play)}
        names |= {"goal": "Learn about returns", "instructions": "Ask", "endpoint": EndpointTarget("chatbot-prod")}
        exec(IMPORTS, names)
        names["target"] = names["endpoint"]
        names["never"] = names["GoalAchievementJudge"](ScriptedModel(lambda request: verdict(False)))
        names["tested"] = names["PenelopeAgent"](names["model"]).execute_test(names["target"], goal="Learn")
        turns = [type("Turn", (), {"role": one["role"], "message": one["content"]}) for one in CONVERSATION]
        names["test_result"] = type("Stored", (), {"conversation": turns, "goal": "Learn"})
        yield names
    assert {name.partition(":")[0] for name in opened} <= {"vertex", "anthropic"}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_runs_and_prints_what_it_says(
    name: str, world: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = BLOCKS[name]
    exec(compile(code, name, "exec"), world)
    assert capsys.readouterr().out == printed
