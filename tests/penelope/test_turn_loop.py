"""The loop of a test: steps inside turns, what is refused, what a strategy asks for."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from stage import Bot, Priced, agent, asks_for, call, judge, player, say, verdict
from vivavoce.errors import BudgetExhausted, ModelFault
from vivavoce.messages import FunctionCall, HumanMessage, ToolCall
from vivavoce.models.model import Request
from vivavoce.penelope.context import TestState
from vivavoce.penelope.result import TestResult
from vivavoce.penelope.strategies import read_graph
from vivavoce.penelope.strategies.strategy import Move
from vivavoce.penelope.tools.tool import ToolResult, tool
from vivavoce.penelope.turn import Turn
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel
from vivavoce.testing.scripted import Scripted

THINK = call("analyze_response", response_text="Fine.", analysis_focus="tone")


async def run_test(
    model: ScriptedModel, bot: Bot | None = None, judging: ScriptedModel | None = None, **options: Any
) -> TestResult:
    about = {name: options.pop(name) for name in ("openings", "facts", "min_turns") if name in options}
    tester = agent(model, judging or judge(False), **{"max_turns": 2, "review_tester": False, **options})
    return await tester.aexecute_test(bot or Bot(), goal="Return a lamp", **about)


def list_steps(turn: Turn) -> list[tuple[str, str | None]]:
    return [(step.tool_name, step.tool_result["error"]) for step in turn.steps]


async def test_steps_are_part_of_the_turn_that_they_lead_to() -> None:
    result = await run_test(player(THINK, say("Hi", reasoning="to begin"), say("Well?")), enable_analysis_tools=True)
    first, second = result.history
    assert [step.tool_name for step in first.steps] == ["analyze_response"]
    assert (first.message, first.reply, first.reasoning, second.steps) == ("Hi", "You said: Hi", "to begin", [])
    assert first.tool_message.tool_call_id == (first.assistant_message.tool_calls or [])[0].id
    assert json.loads(first.tool_message.text) == {"success": True, "output": {"response": "You said: Hi"}}


async def test_calls_made_at_once_are_taken_in_order_and_nothing_after_the_message() -> None:
    bot = Bot()
    result = await run_test(player([*THINK, *say("Hi"), *say("And?"), *THINK]), bot, enable_analysis_tools=True)
    first, second = result.history
    assert bot.sessions[0].sent == [["Hi"], ["Hi", "You said: Hi", "question 1"]]
    late = "not carried out: the turn had ended; one message at a time"
    assert list_steps(first) == [
        ("analyze_response", None),
        ("send_message_to_target", late),
        ("analyze_response", late),
    ]
    assert (second.steps, result.unfinished) == ([], [])


NO_OBJECT = [ToolCall(id="1", function=FunctionCall(name="send_message_to_target", arguments="{"))]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("Hi there.", "no tool was called"),
        (call("send", message="Hi"), "the tool send does not exist; the tools are: send_message_to_target"),
        (call("send_message_to_target"), "wrong arguments for send_message_to_target"),
        (call("send_message_to_target", message=7), "wrong arguments for send_message_to_target"),
        (NO_OBJECT, "the arguments of send_message_to_target are not a JSON object"),
        (say(" "), "not sent: the message is empty"),
        (
            call("end_conversation", reason="done"),
            "it is too early to leave: this conversation has at least 1 turn;",
        ),
    ],
)
async def test_a_wrong_step_is_told_to_the_model_and_never_to_the_target(wrong: Scripted, why: str) -> None:
    bot, model = Bot(), player(wrong, say("Hi"))
    result = await run_test(model, bot, min_turns=1, max_turns=1)
    (step,) = result.history[0].steps
    assert step.refused
    assert why in step.tool_message.text
    assert why in model.requests[1].messages[-1].text
    assert bot.sessions[0].sent == [["Hi"]]
    assert result.metadata["counts"]["refused_steps"] == 1


async def test_a_tool_that_breaks_is_told_to_the_model() -> None:
    @tool
    def look_up(order: str) -> str:
        """Look an order up."""
        raise KeyError(order)

    result = await run_test(player(call("look_up", order="1042"), say("Hi")), tools=[look_up])
    assert list_steps(result.history[0]) == [("look_up", "KeyError: '1042'")]


async def test_what_a_tool_finds_is_kept_and_read_by_the_judge() -> None:
    @tool
    def measure() -> dict[str, Any]:
        """Measure the reply."""
        return {"findings": ["It is short."]}

    judging = judge(False)
    result = await run_test(player(say("Hi"), call("measure"), say("Well?")), judging=judging, tools=[measure])
    assert result.findings == ["It is short."]
    first, second = (request.messages[-1].text for request in judging.requests)
    assert "It is short." not in first
    assert '"It is short."' in second


async def test_what_the_model_behind_a_tool_uses_is_the_tester_s() -> None:
    result = await run_test(player(THINK, say("Hi")), analysis_model=Priced([{"no": "sense"}]), max_turns=1)
    (step,) = result.history[0].steps
    assert step.tool_result["output"]["fallback"].startswith("the model answered outside its schema")
    assert result.usage["tester"] == Usage(calls=1, cost=0.01)
    assert "usage" not in step.tool_message.text


async def test_before_the_budget_of_steps_is_used_up_only_the_message_is_taken() -> None:
    result = await run_test(player(*[THINK] * 8), max_steps=4, enable_analysis_tools=True)
    assert (result.status.name, result.stopped_by, result.blame) == ("ERROR", "step_budget", "tester")
    assert [step.refused for step in result.unfinished] == [False, False, True, True]
    why = "analyze_response is not used any more in this turn, for its steps are nearly used up"
    assert why in result.unfinished[-1].tool_message.text
    assert result.history == []


async def test_every_request_of_a_test_offers_the_same_tools() -> None:
    model = player(call("end_conversation", reason="done"), *[THINK] * 3, say("Hi"), say("Well?"))
    await run_test(model, max_steps=6, min_turns=2, enable_analysis_tools=True)
    offered = [request.tools for request in model.requests]
    assert len(offered) == 6
    assert [tool["function"]["name"] for tool in offered[0]] == [
        *("send_message_to_target", "end_conversation"),
        *("analyze_response", "extract_information", "check_facts", "compare_turns"),
    ]
    assert all(tools == offered[0] for tools in offered)


async def test_the_tester_leaves_when_it_may() -> None:
    result = await run_test(player(say("Hi"), call("end_conversation", reason="fed up")), max_turns=9)
    assert (result.status.name, result.stopped_by, result.turns_used) == ("FAILURE", "tester_left", 1)
    assert "fed up" in result.stop_reason


async def test_a_model_that_fails_now_and_then_is_asked_again() -> None:
    broken = ModelFault("oops", kind="http")
    result = await run_test(player(broken, broken, say("Hi"), broken, broken, say("Well?")))
    assert [turn.message for turn in result.history] == ["Hi", "Well?"]
    assert result.metadata["counts"]["tester_failures"] == 4


@pytest.mark.parametrize(("status", "request_count"), [(401, 1), (404, 1), (500, 3)])
async def test_a_model_that_cannot_come_back_is_asked_no_more(status: int, request_count: int) -> None:
    fault = ModelFault("no", kind="http")
    fault.status = status
    model = ScriptedModel(lambda request: fault)
    result = await run_test(model)
    assert (result.stopped_by, result.blame, len(model.requests)) == ("tester_down", "tester", request_count)
    assert result.failure is not None


async def test_openings_are_said_word_for_word_and_then_the_tester_goes_on() -> None:
    bot, model = Bot(), player(say("My own"))
    result = await run_test(model, bot, openings=["As an AI tester: hi", "Second"], max_turns=3)
    assert [turn.message for turn in result.history] == ["As an AI tester: hi", "Second", "My own"]
    assert [turn.reasoning for turn in result.history] == ["scripted", "scripted", ""]
    assert len(model.requests) == 1


async def test_each_request_begins_with_the_one_before() -> None:
    model = player(say("Hi"), THINK, "prose", say("Well?"))
    await run_test(model, max_turns=4)
    for before, after in pairwise(model.requests):
        assert list(after.messages[: len(before.messages)]) == list(before.messages)
        assert after.messages[0] is before.messages[0]


async def test_whoever_listens_hears_each_turn_once_it_is_judged() -> None:
    messages: list[tuple[int, str | None]] = []

    async def listen(turn: Turn) -> None:
        messages.append((turn.turn_number, turn.evaluation))

    tester = agent(player(), judge(False), max_turns=2, review_tester=False)
    await tester.aexecute_test(Bot(), goal="x", on_turn=listen)
    assert messages == [(1, "so it is"), (2, "so it is")]


async def test_a_listener_may_be_sync_and_return_anything() -> None:
    messages: list[int] = []

    def listen(turn: Turn) -> int:
        messages.append(turn.turn_number)
        return turn.turn_number

    tester = agent(player(), judge(False), max_turns=2, review_tester=False, verbose=True)
    result = await tester.aexecute_test(Bot(), goal="x", on_turn=listen)
    assert (messages, result.status.name) == ([1, 2], "MAX_TURNS")


class Objecting:
    name = "objecting"

    def __init__(self, patience: int | None) -> None:
        self.patience = patience

    def objection(self, message: str, state: TestState) -> str | None:
        return "say it otherwise" if message == "Hi" else None


async def test_a_check_is_heard_until_its_patience_ends() -> None:
    result = await run_test(player(*[say("Hi")] * 3), checks=[Objecting(2)], max_turns=1)
    assert list_steps(result.history[0]) == [("send_message_to_target", "not sent: say it otherwise")] * 2
    assert result.metadata["counts"] == {"objecting": 3, "refused_steps": 2, "objecting_overruled": 1}


async def test_the_patience_of_a_check_is_that_of_a_turn() -> None:
    result = await run_test(player(*[say("Hi")] * 4), checks=[Objecting(1)])
    assert [len(turn.steps) for turn in result.history] == [1, 1]


async def test_a_check_without_end_is_heard_until_the_steps_are_used_up() -> None:
    result = await run_test(player(*[say("Hi")] * 9), checks=[Objecting(None)], max_steps=3)
    assert (result.stopped_by, result.turns_used, result.blame) == ("step_budget", 0, "tester")


class Broken:
    name, adversarial, patience = "own", False, None

    def move(self, state: TestState) -> Move:
        raise ZeroDivisionError("oops")

    def objection(self, message: str, state: TestState) -> str | None:
        raise ZeroDivisionError("oops")


@pytest.mark.parametrize(("what", "fields"), [("strategy", {"strategy": Broken()}), ("check", {"checks": [Broken()]})])
async def test_a_strategy_or_a_check_that_breaks_is_a_result_that_names_it(what: str, fields: dict[str, Any]) -> None:
    result = await run_test(player(say("Hi")), **fields)
    assert (result.status.name, result.stopped_by, result.blame) == ("ERROR", "broken", "tester")
    assert result.stop_reason == f"the {what} own raised ZeroDivisionError: oops"


async def test_pair_begins_a_new_session_with_each_message() -> None:
    bot, model = Bot(), player()
    result = await run_test(model, bot, strategy="pair", max_turns=3)
    assert [session.sent for session in bot.sessions] == [[["question 1"]], [["question 2"]], [["question 3"]]]
    assert all(session.closed for session in bot.sessions)
    assert [turn.fresh for turn in result.history] == [False, True, True]
    assert "A new conversation begins; the assistant remembers nothing." in model.requests[1].messages[-1].text
    assert (result.context.adversarial, result.target_passed) == (True, True)


def refusing(text: str) -> str:
    return "I'm sorry, but I can't help with that." if text == "question 2" else f"Gladly: {text}."


@pytest.mark.parametrize("stateless", [True, False])
async def test_crescendo_takes_a_refused_exchange_back_where_the_target_can(stateless: bool) -> None:
    bot, model = Bot(refusing, stateless=stateless), player()
    result = await run_test(model, bot, strategy="crescendo", max_turns=3)
    (session,) = bot.sessions
    assert [turn.forgotten for turn in result.history] == [False, stateless, False]
    assert ("question 2" in session.sent[-1]) is not stateless
    assert result.metadata["counts"].get("forgotten", 0) == int(stateless)
    note = model.requests[2].messages[-1]
    assert isinstance(note, HumanMessage)
    assert ("The last exchange is taken back" in note.text) is stateless
    assert len(result.conversation.turns) == 6, "what was taken back was said all the same"


class Forgetful:
    name, adversarial = "forgetful", False

    def move(self, state: TestState) -> Move:
        return Move(rollback=True)


@pytest.mark.parametrize("stateless", [True, False])
async def test_only_what_the_target_is_sent_anew_each_time_can_be_taken_back(stateless: bool) -> None:
    bot = Bot(stateless=stateless)
    result = await run_test(player(), bot, strategy=Forgetful())
    assert [turn.forgotten for turn in result.history] == [stateless, False]
    assert (bot.sessions[0].sent[1] == ["question 2"]) is stateless


GRAPH = {
    "start": "greet",
    "nodes": {
        "greet": {"say": "Hello", "next": [{"to": "order", "when": {"contains": "order"}}, {"to": "greet_again"}]},
        "greet_again": {"say": "Anybody there?", "next": "order"},
        "order": {"improvise": "Name the order."},
    },
}


async def test_a_script_of_states_is_followed_and_then_the_tester_goes_on() -> None:
    model = player(say("It is 1042."))
    result = await run_test(
        model, Bot(lambda message: f"Which order? ({message})"), strategy=read_graph(GRAPH), max_turns=3
    )
    assert [turn.message for turn in result.history] == ["Hello", "It is 1042.", "question 1"]
    notes = [request.messages[-1].text for request in model.requests]
    assert notes == ["Turn 2 of at most 3. Name the order.", "Turn 3 of at most 3."]


async def test_the_other_way_is_taken_where_the_condition_does_not_hold() -> None:
    result = await run_test(player(), Bot(lambda message: "Hm?"), strategy=read_graph(GRAPH), max_turns=2)
    assert [turn.message for turn in result.history] == ["Hello", "Anybody there?"]


async def test_a_model_without_tools_leads_a_test_in_json() -> None:
    numbers = iter(range(1, 9))

    def answer(request: Request) -> Scripted:
        if request.tools:
            return ModelFault("no tools here", kind="unsupported")
        return {"reasoning": "r", "message": f"q{next(numbers)}"}

    model = ScriptedModel(answer)
    result = await run_test(model)
    assert [turn.message for turn in result.history] == ["q1", "q2"]
    assert len(model.requests) == 3


async def test_prose_is_never_sent_even_if_it_reads_like_a_message() -> None:
    """As recorded: a small model was told to call a tool, and wrote its message without one."""
    prose = "Hello! I hope this message finds you well. I would like to cancel my return flight, please."
    model = player(
        prose, prose, {"reasoning": "as asked", "message": "Hello! I would like to cancel my return flight."}
    )
    bot = Bot()
    result = await run_test(model, bot, max_turns=1)
    assert bot.sessions[0].sent == [["Hello! I would like to cancel my return flight."]]
    assert [step.refused for step in result.history[0].steps] == [True, True]
    assert "nothing was sent; call exactly one of the tools" in result.history[0].steps[0].tool_message.text
    words, note = (message.text for message in model.requests[-1].messages)
    assert '{"reasoning": "why", "message": "what the user says"}' in words
    assert note == "Turn 1 of at most 1.", "as if it had been known that JSON is what helps"


async def test_leaving_in_json_ends_the_test() -> None:
    leaving = {"reasoning": "It asks again and again.", "leave": "fed up"}
    model = player(ModelFault("no tools", kind="unsupported"), {"reasoning": "", "message": "Hi"}, leaving)
    result = await run_test(model, max_turns=9)
    assert (result.status.name, result.stopped_by, result.turns_used) == ("FAILURE", "tester_left", 1)
    assert result.stop_reason == "the tester ended the conversation: fed up"


async def test_a_result_may_be_a_tool_result() -> None:
    @tool
    def fail() -> ToolResult:
        """Fail."""
        return ToolResult(success=False, error="not today")

    result = await run_test(player(call("fail"), say("Hi")), tools=[fail])
    assert list_steps(result.history[0]) == [("fail", "not today")]
    assert result.findings == []


async def test_what_a_tool_returns_is_cut_before_anybody_reads_it() -> None:
    @tool
    def dump() -> dict[str, list[str]]:
        """Return everything."""
        return {"findings": ["x" * 5_000_000]}

    model, judging = player(call("dump"), say("Hi")), judge(False)
    result = await run_test(model, judging=judging, tools=[dump], max_turns=1)
    texts = [message.text for request in (*model.requests, *judging.requests) for message in request.messages]
    assert max(map(len, texts)) < 30_000
    assert any("cut after 20,000 characters" in text for text in texts)
    assert result.history[0].steps[0].tool_result["success"]
    assert [finding.endswith("cut after 20,000 characters") for finding in result.findings[:1]] == [True]


DECLINED = "Dazu sage ich Ihnen nichts."


def deciding(refused: str | ModelFault) -> ScriptedModel:
    """Return a judge for whom the goal is never met, and who says this of a refusal."""

    def answer(request: Request) -> Scripted:
        if asks_for(request, "refused"):
            return refused if isinstance(refused, ModelFault) else {"refused": refused}
        return verdict(False)

    return Priced(answer)


@pytest.mark.parametrize(
    ("refused", "guidance"), [("yes", "refused"), ("partly", "refused"), ("no", "Take up something")]
)
async def test_a_refusal_in_other_words_is_asked_for_where_the_strategy_heeds_it(refused: str, guidance: str) -> None:
    judging = deciding(refused)
    result = await run_test(player(), Bot(lambda message: DECLINED), judging, strategy="crescendo", max_turns=2)
    first, second = result.history
    assert (first.target_refused, second.target_refused) == (refused, None)
    assert guidance in (second.guidance or "")
    requests = [request for request in judging.requests if asks_for(request, "refused")]
    assert len(requests) == 1
    assert result.usage["judge"].calls == 3
    assert TestResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(
    ("reply", "strategy"), [("I can't help with that.", "crescendo"), (DECLINED, "improvise"), ("", "crescendo")]
)
async def test_nobody_is_asked_where_the_words_say_it_or_nobody_heeds_it(reply: str, strategy: str) -> None:
    judging = deciding("yes")
    result = await run_test(player(), Bot(lambda message: reply), judging, strategy=strategy, max_turns=2)
    assert not any(asks_for(request, "refused") for request in judging.requests)
    assert [turn.target_refused for turn in result.history] == [None, None]


async def test_where_the_judge_is_away_the_words_decide_and_that_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    judging = deciding(ModelFault("no route", kind="connection"))
    result = await run_test(player(), Bot(lambda message: DECLINED), judging, strategy="crescendo", max_turns=2)
    assert result.history[0].target_refused is None
    assert result.metadata["counts"]["refusal_not_judged"] == 1
    assert "whether the target refused could not be judged" in caplog.text


async def test_a_detail_that_is_asked_for_in_another_language_is_told_at_once() -> None:
    def answer(request: Request) -> Scripted:
        return {"asked": ["customer number"]} if asks_for(request, "asked") else verdict(False)

    bot = Bot(lambda message: "Nennen Sie mir bitte die Nummer oben rechts auf Ihrer Rechnung.")
    facts = {"customer number": "88231"}
    model = player(say("Ich will kündigen."), say("88231"))
    result = await run_test(model, bot, ScriptedModel(answer), facts=facts)
    assert [turn.message for turn in result.history] == ["Ich will kündigen.", "88231"]
    assert (list_steps(result.history[1]), "disclosure" in result.metadata["counts"]) == ([], False)


async def test_a_check_that_spends_the_last_of_the_budget_ends_more_than_the_test() -> None:
    class Spending:
        name, patience = "spending", None

        async def objection(self, message: str, state: TestState) -> str | None:
            raise BudgetExhausted("no more calls")

    with pytest.raises(BudgetExhausted):
        await run_test(player(say("Hi")), checks=[Spending()])
