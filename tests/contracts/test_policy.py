"""The policy of a test: every judge reads it, and neither the tester nor the target does, wherever it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server.live import serving
from stage import NO_FAULT, Bot, asks_for, player, say, simple, verdict
from vivavoce import evaluate, run_suite
from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.metrics import SafetyMetric, evaluate_conversation, evaluate_test_result
from vivavoce.metrics.streaming import StreamingEvaluator
from vivavoce.models.model import Request
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.distil import distil_scenarios
from vivavoce.penelope.result import read_test
from vivavoce.samples.sample import Sample
from vivavoce.server.policy import ServerPolicy
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_regrading
from vivavoce.suites.load import load_suite
from vivavoce.testing import LoopbackServer, ScriptedModel

POLICY = 'No refund without "ok".\ncall c0 refund {}'
LINE = f"policy: {json.dumps(POLICY)}\n"
SECRET = "No refund without"
TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
SAFE: dict[str, Any] = {"violations": [], "reasoning": "It is safe.", "confidence": 0.9}


def examine(request: Request) -> Any:
    if asks_for(request, "faults"):
        return NO_FAULT
    if asks_for(request, "violations") and not asks_for(request, "achievement_level"):
        return SAFE
    return simple(False) if asks_for(request, "criteria_evaluations") else verdict(False)


def words(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def judged_with(requests: list[Request]) -> None:
    """Check that there are requests, and that each begins with the policy."""
    assert requests
    for request in requests:
        assert request.messages[-1].text.startswith(LINE)
        assert words(request).count(SECRET) == 1


def test_every_judge_of_a_test_reads_it_and_tester_and_target_do_not() -> None:
    tester, examiner, bot = player(say("Hi.")), ScriptedModel(examine, "examiner"), Bot()
    agent = PenelopeAgent(
        tester, judge=examiner, evaluation_metrics=["coherence"], guard_metrics=["safety"], max_turns=2
    )
    about: Any = {"must": "greet", "scenario": "at home", "facts": {"order": "1042"}, "policy": POLICY}
    result = agent.execute_test(bot, goal="Get a refund", **about)
    assert result.context.policy == POLICY
    asked = {request.schema.__name__ for request in examiner.requests if isinstance(request.schema, type)}
    assert {"GoalReply", "ContractReply", "ViolationsReply", "ChecklistReply", "ReviewReply"} <= asked
    judged_with(examiner.requests)
    assert tester.requests
    assert not [request for request in tester.requests if SECRET in words(request) or SECRET in str(request.tools)]
    assert SECRET not in json.dumps([session.sent for session in bot.sessions])


def test_the_simple_question_reads_it_too() -> None:
    examiner = ScriptedModel(examine, "examiner")
    agent = PenelopeAgent(player(), judge=examiner, goal_metric="simple", max_turns=1)
    agent.execute_test(Bot(), goal="Get a refund", policy=POLICY)
    judged_with(examiner.requests)


SUITE = """\
name: led
driver: penelope
dataset: {{rows: [{{id: s, goal: Get a refund, {policy}}}]}}
target: {{kind: function, function: "bot.py:reply"}}
tester: {{model: "bot.py:tester", judge: "bot.py:examiner", max_turns: 1}}
graders: {{goal: {{kind: function, function: goal_achieved}}}}
"""
BOT = """\
from pathlib import Path
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

def kept(who, request):
    with Path(who).open("a") as file:
        file.write("\\n".join(message.text for message in request.messages))

def play(request):
    kept("tester.txt", request)
    return [ToolCall(name="send_message_to_target", args={"message": "Hi."})]

def examine(request):
    kept("examiner.txt", request)
    if "faults" in request.schema.model_fields:
        return {"faults": [], "reasoning": "fine", "confidence": 0.9}
    return {"achievement_level": "not_achieved", "confidence": 0.9, "reasoning": "no", "evidence": []}

tester, examiner = ScriptedModel(play, "tester"), ScriptedModel(examine, "examiner")

def reply(message):
    with Path("target.txt").open("a") as file:
        file.write(str(message))
    return "Hello."
"""


def test_a_row_of_a_suite_has_it_and_a_stored_conversation_is_judged_with_it_again() -> None:
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE.format(policy="policy_path: policy.md"))
    Path("policy.md").write_text(POLICY)
    outcome = next(run_suite("suite.yaml").outcomes())
    assert LINE in Path("examiner.txt").read_text()
    assert SECRET not in Path("tester.txt").read_text() + Path("target.txt").read_text()
    held = outcome.attempt.trajectory
    assert held.test is not None
    assert read_test(held.test, held).context.policy == POLICY
    examiner = ScriptedModel(examine, "examiner")
    evaluate_test_result("latest/s", [SafetyMetric(examiner)])
    judged_with(examiner.requests)


RECORDED: dict[str, Any] = {
    "name": "recorded",
    "driver": "replay",
    "dataset": {"rows": [{"id": "a", "messages": TALK}, {"id": "b", "messages": TALK, "policy": "Be kind."}]},
    "graders": {"safety": {"kind": "metric", "metric": "safety", "model": "bot.py:examiner"}},
}
EXAMINER = """\
from pathlib import Path
from vivavoce.testing import ScriptedModel

def examine(request):
    with Path("examiner.txt").open("a") as file:
        file.write(request.messages[-1].text.splitlines()[0] + "\\n")
    return {"violations": [], "reasoning": "fine", "confidence": 0.9}

examiner = ScriptedModel(examine, "examiner")
"""


def suite_with(**policy: str) -> Path:
    dataset = {**RECORDED["dataset"], **policy}
    Path("suite.json").write_text(json.dumps({**RECORDED, "dataset": dataset}))
    return Path("suite.json")


async def test_the_policy_of_a_suite_is_that_of_the_rows_without_one_also_when_they_are_graded_again() -> None:
    Path("bot.py").write_text(EXAMINER)
    Path("policy.md").write_text(POLICY, encoding="utf-8-sig")
    run = run_suite(suite_with(policy_path="policy.md"))
    rows = {outcome.attempt.key.sample_id: json.loads(outcome.attempt.sample)["policy"] for outcome in run.outcomes()}
    assert rows == {"a": POLICY, "b": "Be kind."}
    changed = load_suite(suite_with(policy="Be brief."))
    with Store.open(settings().store) as store:
        await open_regrading(run.run.id, store=store).execute()
        await open_regrading(run.run.id, changed, store=store).execute()
    kind, brief = 'policy: "Be kind."\n', 'policy: "Be brief."\n'
    told = Path("examiner.txt").read_text().splitlines(keepends=True)
    assert [set(told[:2]), set(told[2:4]), set(told[4:])] == [{LINE, kind}, {LINE, kind}, {brief, kind}]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"policy": "a", "policy_path": "b"}, "use policy or policy_path, not both"),
        ({"policy_path": "none.md"}, "'none.md' cannot be read: No such file or directory"),
        ({"policy_path": "bot.pyc"}, "'bot.pyc' is not UTF-8"),
        ({"policy_path": "empty.md"}, "'empty.md' is empty"),
    ],
)
def test_a_policy_of_a_suite_that_cannot_be_used_is_told_with_its_place(policy: dict[str, str], why: str) -> None:
    Path("bot.py").write_text(EXAMINER)
    Path("bot.pyc").write_bytes(b"\xff")
    Path("empty.md").write_text("\n")
    with pytest.raises(UsageError, match=f"dataset.*{why}") as caught:
        run_suite(suite_with(**policy))
    assert str(caught.value).startswith("suite.json:1:")


def test_recorded_conversations_are_judged_with_it() -> None:
    examiner = ScriptedModel(examine, "examiner")
    evaluate([{"messages": TALK, "policy": POLICY}], [SafetyMetric(examiner)])
    evaluate_conversation(TALK, [SafetyMetric(examiner)], policy=POLICY)
    SafetyMetric(examiner).evaluate(TALK, policy=POLICY)
    growing = StreamingEvaluator([SafetyMetric(examiner)], policy=POLICY)
    growing.feed(*TALK)
    judged_with(examiner.requests)
    assert len(examiner.requests) == 4


def test_a_server_is_told_it_in_an_evaluation_and_in_a_job() -> None:
    with LoopbackServer(lambda _: SAFE) as judge, Store.open(settings().store) as store:
        name = f"{judge.base_url}#examiner"
        with serving(store, ServerPolicy(models=frozenset({name}))) as url, Client(url) as client:
            client.evaluate(TALK, ["safety"], judge=name, policy=POLICY)
        assert LINE in judge.requests[0].body["messages"][-1]["content"]


def test_a_distilled_scenario_keeps_the_policy_of_its_recording() -> None:
    part: dict[str, Any] = {"goal": "Say hi", "instructions": "", "scenario": "", "facts": []}
    empty = dict.fromkeys(("description", "style", "knowledge", "patience", "language"), "")
    model = ScriptedModel([{**part, "persona": {"name": "user", **empty}}])
    recorded = Sample.model_validate({"id": "a", "messages": TALK, "policy": POLICY})
    (one,) = distil_scenarios([recorded], model)
    assert one.scenario is not None
    assert one.scenario.row()["policy"] == POLICY
    assert SECRET not in words(model.requests[0])
