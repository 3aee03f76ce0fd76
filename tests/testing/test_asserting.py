"""`viva_assert`, trials and fixtures, in calls of pytest of their own, and outside of pytest."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from vivavoce import ConversationHistory, MultiTurnSample, evaluate, run_suite
from vivavoce.errors import ModelFault, SuiteFault, TargetFault, UsageError
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.metrics import AspectCritic
from vivavoce.penelope import TestResult
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.turn import Turn
from vivavoce.records.score import Failure
from vivavoce.records.trajectory import Turn as RecordedTurn
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.testing import ScriptedModel, viva_assert
from vivavoce.testing.running import RunningTest, running_test
from vivavoce.testing.trials import KEYS

pytest_plugins = ["pytester"]

WORDS = [{"role": "user", "content": "Where is order 1042?"}, {"role": "assistant", "content": "It arrives today."}]
SPEAK = """
import pytest
from vivavoce.testing import viva_assert

def spoken(*said):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, said)]
"""


@pytest.fixture(autouse=True)
def _only_this_plugin(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Load the plugin by its module, whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "vivavoce.testing.plugin")


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert as a program does that pytest knows nothing of."""
    monkeypatch.setattr("vivavoce.testing.running._running", list[RunningTest]())


pytestmark = pytest.mark.usefixtures("outside")


def history() -> ConversationHistory:
    return ConversationHistory.from_dict_list(WORDS)


@pytest.mark.parametrize(
    "conversation",
    [
        WORDS,
        [HumanMessage(content="Where is it?"), AIMessage(content="It arrives today.")],
        tuple(WORDS),
        history(),
        {"id": "x", "messages": WORDS},
        MultiTurnSample.model_validate({"user_input": WORDS}),
        {"user_input": "Where?", "response": "It arrives today."},
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_holds_a_conversation_can_be_asserted(conversation: Any) -> None:
    scores = viva_assert(conversation, [{"metric": "turn_count", "threshold": 1}])
    assert scores["turn_count"].passed
    with pytest.raises(AssertionError, match=r"turn_count"):
        viva_assert(conversation, [{"metric": "turn_count", "threshold": 0}])


def test_one_metric_may_be_given_alone() -> None:
    assert viva_assert(WORDS, {"metric": "turn_count", "threshold": 1})["turn_count"].passed
    with pytest.raises(UsageError, match="no metric 'refusle'; did you mean 'refusal'"):
        viva_assert(WORDS, "refusle")


def test_a_mistake_is_shown_at_the_line_of_the_test_alone() -> None:
    with pytest.raises(UsageError) as caught:
        viva_assert(WORDS, ["refusle"])
    assert [entry.name for entry in caught.traceback] == [
        "test_a_mistake_is_shown_at_the_line_of_the_test_alone",
        "viva_assert",
    ]
    assert caught.value.__context__ is None


def test_a_failure_has_the_turn_the_words_the_reason_and_the_command() -> None:
    two = [*WORDS, {"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "Yes."}]
    with pytest.raises(AssertionError) as caught:
        viva_assert(two, expect=[{"contains": "today"}, {"contains": "tomorrow"}])
    head, _, *rest = str(caught.value).splitlines()
    assert head == "expect: turn 2: does not contain 'tomorrow', said 'Yes.'"
    assert rest[:4] == [
        "  turn 2",
        "       user  Sure?",
        "  assistant  Yes.",
        "  ✗ expect 0.50  contains 'tomorrow': does not contain 'tomorrow'",
    ]
    with Store.open(settings().store, create=False) as store:
        run = store.runs()[0]
        assert rest[-1] == f"the whole conversation: viva show {run.id} conversation"
        assert [attempt.key.sample_id for attempt in store.attempts(run.id)] == ["conversation"]
        assert run.status == "finished"


def test_a_judge_that_broke_is_an_error_and_no_failure() -> None:
    judge = ScriptedModel(lambda request: ModelFault("the judge is away", kind="connection"))
    critic = AspectCritic(judge, definition="The assistant is polite.")
    with pytest.raises(ModelFault, match=r"could not be judged: .*the judge is away[\s\S]*viva show pytest-") as caught:
        viva_assert(WORDS, [critic])
    assert caught.value.kind == "connection"


def test_what_fails_for_certain_fails_whatever_broke_besides() -> None:
    judge = ScriptedModel(lambda request: ModelFault("the judge is away"))
    critic = AspectCritic(judge, definition="The assistant is polite.")
    with pytest.raises(AssertionError, match="tomorrow"):
        viva_assert(WORDS, [critic], expect=[{"contains": "tomorrow"}])


def test_an_assertion_may_ask_the_judge() -> None:
    polite = [{"judged": "The assistant is polite."}]
    with pytest.raises(UsageError, match="an assertion of expect needs a judge: give model="):
        viva_assert(WORDS, expect=polite)
    judge = ScriptedModel(lambda request: ModelFault("the judge is away"))
    with pytest.raises(ModelFault, match="the judge is away"):
        viva_assert(WORDS, expect=polite, model=judge)


def test_what_does_not_apply_is_said() -> None:
    with pytest.raises(SuiteFault, match=r"nothing was asserted, because nothing applies: contains: .*ground"):
        viva_assert(WORDS, ["contains"])
    with pytest.warns(UserWarning, match=r"viva_assert: does not apply: contains: ") as caught:
        viva_assert(WORDS, ["contains", {"metric": "turn_count", "threshold": 1}])
    assert Path(caught[0].filename) == Path(__file__)


@pytest.mark.parametrize(
    ("conversation", "arguments", "text"),
    [
        (WORDS, {}, "nothing is asserted: give metrics"),
        (WORDS, {"metrics": ["refusle"]}, "no metric 'refusle'; did you mean 'refusal'"),
        (WORDS, {"metrics": ["toxicity"]}, "the metric 'toxicity' needs a judge: give model=…, set "),
        (
            17,
            {"metrics": ["turn_count"]},
            "a row is a dict with 'messages', a sample or a ConversationHistory; got int",
        ),
        ([{"content": "x"}], {"metrics": ["turn_count"]}, "role"),
        (WORDS, {"expect": [{"containz": "x"}]}, "containz"),
        (
            MultiTurnSample.model_validate({"user_input": WORDS}),
            {"goal": "x"},
            "a MultiTurnSample has its own fields: put goal there",
        ),
    ],
)
def test_what_cannot_be_asserted_is_said(conversation: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((UsageError, SuiteFault)) as caught:
        viva_assert(conversation, **arguments)
    assert text in str(caught.value)


def build_result(*exchanges: tuple[str, str], **fields: Any) -> TestResult:
    """Return the result of a test with these exchanges."""
    history: list[Turn] = []
    for number, (user, assistant) in enumerate(exchanges, 1):
        call = ToolCall(name="send_message_to_target", args={"message": user})
        exchange = RecordedTurn(index=number - 1, messages=[HumanMessage(content=user), AIMessage(content=assistant)])
        history.append(
            Turn(
                assistant_message=AIMessage(content=None, tool_calls=[call]),
                tool_message=ToolMessage(content="sent", tool_call_id=call.id),
                turn_number=number,
                timestamp=datetime.now(UTC),
                exchange=exchange,
            )
        )
    return TestResult(context=TestContext(goal="The date is told."), history=history, **fields)


def test_the_result_of_a_tester_passes_where_its_target_did() -> None:
    texts = ("Where is order 1042?", "It arrives today.")
    passed = build_result(texts, status="success", goal_achieved=True, target_passed=True)
    assert viva_assert(passed)["target_passed"].passed
    lost = build_result(
        texts, status="failure", goal_achieved=False, target_passed=False, stop_reason="It never said when."
    )
    with pytest.raises(AssertionError, match=r"target_passed: [\s\S]*It arrives today\.[\s\S]*viva show pytest-"):
        viva_assert(lost)
    assert viva_assert(lost, expect={"contains": "today"}, metrics=[{"metric": "turn_count", "threshold": 1}])


@pytest.mark.parametrize("message", [(), (("Where?", "Here."),)])
def test_a_test_that_could_not_be_held_is_an_error(message: Any) -> None:
    away = Failure(blame="target", kind="connection", message="the bot is away")
    broken = build_result(
        *message, status="error", goal_achieved=False, failure=away, blame="target", stop_reason=away.message
    )
    with pytest.raises(TargetFault, match="could not be held: target: the bot is away"):
        viva_assert(broken)


def test_the_result_of_a_run_passes_where_its_gate_does(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def reply(message):\n    return message\n")
    suite = tmp_path / "suite.yaml"
    text = """
name: echo
target: {kind: function, function: "bot.py:reply"}
dataset: {rows: [{id: a, input: yes, ground_truth: yes}, {id: b, input: no, ground_truth: maybe}]}
graders: {said: {kind: function, function: contains}}
"""
    suite.write_text(f"{text}gate: {{kind: simple, metric_key: said, value: 0.5}}\n")
    assert viva_assert(run_suite(suite)) == {}
    suite.write_text(f"{text}gate: {{kind: simple, metric_key: said, value: 0.9}}\n")
    with pytest.raises(AssertionError, match=r"1 of 2 conversations did not pass\n  fail · said.*\n\nb: said: .*maybe"):
        viva_assert(run_suite(suite))
    suite.write_text(text)
    with pytest.raises(AssertionError, match="b: said"):
        viva_assert(run_suite(suite))
    suite.write_text(
        text.replace("ground_truth: maybe", "ground_truth: no").replace("{id: a, input: yes", "{id: a, input: '0'")
    )
    (tmp_path / "bot.py").write_text("def reply(message):\n    return message if message != '0' else 1 / 0\n")
    with pytest.raises(SuiteFault, match=r"is inconclusive: [\s\S]*a: could not be held: target: .*division by zero"):
        viva_assert(run_suite(suite))


def test_a_run_takes_no_metrics() -> None:
    result = evaluate([{"id": "a", "messages": WORDS}], [{"metric": "turn_count", "threshold": 1}])
    assert viva_assert(result)["turn_count"].passed
    with pytest.raises(UsageError, match="leave the metrics out"):
        viva_assert(result, ["refusal"])


def test_it_works_inside_a_running_loop() -> None:
    async def inside() -> None:
        viva_assert(WORDS, expect=[{"contains": "today"}])

    import asyncio

    asyncio.run(inside())


def test_a_test_with_trials_has_one_verdict(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        SPEAK
        + """
answers = iter(["yes", "yes", "no", "yes", "yes", "no", "no", "yes"])
made = []

@pytest.fixture
def once():
    made.append(1)
    return made

@pytest.mark.viva(trials=5, min_pass=4)
def test_enough(once):
    assert made == [1]
    viva_assert(spoken("May I?", next(answers)), expect=[{"contains": "yes"}])

@pytest.mark.viva(trials=3)
def test_too_few():
    assert next(answers) == "yes"
"""
    )
    result = pytester.runpytest_inprocess("--junitxml=j.xml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "1 of 3 trials passed; needed 3",
            "trial 1 (test_*.py:*): *",
            "trial 2 (test_*.py:*): *",
            "FAILED *test_too_few*",
        ]
    )
    assert '"4 of 5 trials passed; needed 4"' in (pytester.path / "j.xml").read_text()
    with Store.open(".vivavoce/vivavoce.db", create=False) as store:
        keys = [attempt.key for attempt in store.attempts(store.runs()[0].id)]
    assert [key.trial for key in keys] == [0, 1, 2, 3, 4]
    assert {key.sample_id.rpartition("::")[2] for key in keys} == {"test_enough"}


def test_a_trial_that_broke_is_an_error_where_it_could_change_the_verdict(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import pytest
outcomes = iter("+!+" "+!-" "!--")

def once():
    outcome = next(outcomes)
    if outcome == "!":
        raise ConnectionError("the bot is away")
    assert outcome == "+"

@pytest.mark.viva(trials=3, min_pass=2)
def test_decided():
    once()

@pytest.mark.viva(trials=3, min_pass=2)
def test_open():
    once()

@pytest.mark.viva(trials=3, min_pass=2)
def test_lost():
    once()
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *ConnectionError: the bot is away",
            "E *1 of 3 trials passed; needed 2; broke: trial 2. This is what broke trial 2",
            "0 of 3 trials passed; needed 2",
            "trial 1 (test_*.py:*): ConnectionError: the bot is away",
        ]
    )


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("trails=5", "no key 'trails'; did you mean 'trials'?"),
        ("5", "use keywords: trials=5, min_pass=4"),
        ("min_pass=4", "use keywords: trials=5, min_pass=4"),
        ("trials=0", "trials must be a whole number of at least 1; got 0"),
        ("trials=True", "trials must be a whole number of at least 1; got True"),
        ("trials=2, min_pass=3", "min_pass is 3, but there are only 2 trials"),
        ("trials=2, min_pass='1'", "min_pass must be a whole number of at least 1; got '1'"),
    ],
)
def test_a_marker_that_is_wrong_is_an_error(pytester: pytest.Pytester, marker: str, text: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.viva({marker})\ndef test_it():\n    pass\n")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"@pytest.mark.viva: {text}"])
    assert KEYS == ("trials", "min_pass")


def test_a_skip_hides_no_miss(pytester: pytest.Pytester) -> None:
    head = """
import itertools, unittest, pytest
def trials(*ends):
    ends = iter(ends)
    def end():
        match next(ends):
            case "miss": assert 0, "missed"
            case "skip": pytest.skip("no key")
            case "skip of unittest": raise unittest.SkipTest("no key")
            case "xfail": pytest.xfail("known")
            case "break": 1 / 0
            case "exit": pytest.exit("enough")
    return end
"""
    cases = {
        "miss_skip": (["miss", "skip", "pass"], 2),
        "miss_xfail": (["miss", "xfail", "pass"], 2),
        "pass_skip": (["pass", "skip", "skip of unittest"], 2),
        "enough": (["pass", "skip", "pass"], 2),
        "first_skip": (["skip", "miss", "miss"], 2),
        "first_xfail": (["xfail", "miss", "miss"], 2),
        "break_skip": (["break", "skip", "pass"], 2),
        "too_few": (["break", "skip", "miss"], 3),
    }
    tests = [
        f"end_{name} = trials(*{ends})\n@pytest.mark.viva(trials={len(ends)}, min_pass={least})\n"
        f"def test_{name}(): end_{name}()\n"
        for name, (ends, least) in cases.items()
    ]
    pytester.makepyfile(test_them="\n".join([head, *tests]))
    result = pytester.runpytest_inprocess("-rA")
    result.assert_outcomes(passed=1, skipped=2, xfailed=1, failed=4)
    result.stdout.re_match_lines_random(
        [
            r"1 of 3 trials passed; needed 2",
            r"trial 2 \(.*\): Skipped: no key",
            r"trial 2 \(.*\): XFailed: known",
            r"E +ZeroDivisionError: .*",
            r"0 of 3 trials passed; needed 3",
            r"PASSED .*enough",
            r"FAILED .*miss_skip.*",
            r"FAILED .*miss_xfail.*",
            r"FAILED .*break_skip.*",
            r"FAILED .*too_few.*",
            r"XFAIL .*first_xfail.*",
        ]
    )
    pytester.makepyfile(test_exit=f"{head}end = trials('exit')\n@pytest.mark.viva(trials=3)\ndef test_it(): end()\n")
    stopped = pytester.runpytest_inprocess("test_exit.py")
    stopped.stdout.fnmatch_lines(["*Exit: enough*"])
    stopped.assert_outcomes()


def test_a_method_has_trials_and_a_test_of_unittest_has_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import unittest
import pytest
made = []

class TestPlain:
    @pytest.mark.viva(trials=3)
    def test_it(self, tmp_path):
        made.append(tmp_path)

def test_after():
    assert len(made) == 3
    assert len(set(made)) == 1

class TestOld(unittest.TestCase):
    @pytest.mark.viva(trials=3)
    def test_it(self):
        pass
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["@pytest.mark.viva needs a test function; test_it is not one"])


@pytest.mark.parametrize(
    ("plugins", "head"),
    [
        (("-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto"), ""),
        (("-p", "anyio.pytest_plugin"), "@pytest.mark.anyio\n"),
        ((), None),
    ],
    ids=["asyncio", "anyio", "neither"],
)
def test_an_async_test_has_trials(pytester: pytest.Pytester, plugins: tuple[str, ...], head: str | None) -> None:
    pytester.makepyfile(
        f"""{SPEAK}
@pytest.fixture
def anyio_backend():
    return "asyncio"

calls = []

{head or ""}@pytest.mark.viva(trials=3, min_pass=2)
async def test_it():
    calls.append(1)
    viva_assert(spoken("May I?", "yes"), expect=[{{"contains": "yes"}}])
    assert len(calls) != 2

def test_after():
    assert len(calls) == 3
"""
    )
    options = ("-o", "asyncio_default_fixture_loop_scope=function") if "asyncio_mode=auto" in plugins else ()
    result = pytester.runpytest_inprocess(*plugins, *options)
    if head is None:
        result.assert_outcomes(failed=2)
        result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])
    else:
        result.assert_outcomes(passed=2)


def test_the_fixtures_come_from_the_configuration(pytester: pytest.Pytester) -> None:
    (pytester.path / "bot.py").write_text("def reply(messages):\n    return f'reply {len(messages)}'\n")
    (pytester.path / "judge.py").write_text(
        "from vivavoce.testing import ScriptedModel\nmodel = ScriptedModel(lambda request: 'good', 'from a file')\n"
    )
    pytester.makeini(
        "[pytest]\nviva_target = bot.py:reply\nviva_judge = judge.py:model\nviva_tester = judge.py:model\n"
    )
    pytester.makepyfile(
        SPEAK
        + """
def test_the_target(viva_target, viva_store):
    talk = viva_target.talk("one", "two")
    assert [message.text for message in talk.messages] == ["one", "reply 1", "two", "reply 3"]
    viva_assert(talk, expect=[None, {"contains": "3"}])
    assert len(viva_store.runs()) == 1

def test_the_judge(viva_judge, viva_tester):
    assert viva_judge.name == "from a file"
    assert viva_tester.execute_test
"""
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


def test_a_target_that_fails_while_a_test_talks_to_it_is_an_error(pytester: pytest.Pytester) -> None:
    (pytester.path / "bot.py").write_text("def reply(message):\n    return 1 / 0\n")
    pytester.makepyfile("def test_it(viva_target):\n    viva_target.talk('one')\n")
    result = pytester.runpytest_inprocess("-o", "viva_target=bot.py:reply", "--junitxml=j.xml")
    result.stdout.fnmatch_lines(["E *TargetFault: *division by zero*"])
    result.stdout.no_fnmatch_line("*talking_target.py*")
    assert '<property name="viva_fault" value="target.crash"' in (pytester.path / "j.xml").read_text()


def test_the_environment_names_the_target_where_the_configuration_does_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pytester.path / "bot.py").write_text("def reply(message):\n    return 'a'\ndef other(message):\n    return 'b'\n")
    pytester.makepyfile("def test_it(viva_target):\n    assert viva_target.talk('one').messages[-1].content == 'b'\n")
    monkeypatch.setenv("VIVAVOCE_TARGET", "bot.py:other")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.runpytest_inprocess("-o", "viva_target=bot.py:reply").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("fixture", "text"),
    [
        (
            "viva_target",
            "*nothing is named for viva_target: set viva_target in *or set VIVAVOCE_TARGET, or write a fixture*",
        ),
        ("viva_judge", "*nothing is named for viva_judge: set viva_judge in *or set VIVAVOCE_JUDGE*"),
        ("viva_tester", "*nothing is named for viva_tester: *VIVAVOCE_TESTER*"),
    ],
)
def test_a_fixture_that_nothing_is_named_for_says_so(pytester: pytest.Pytester, fixture: str, text: str) -> None:
    pytester.makepyfile(f"def test_it({fixture}):\n    pass\n")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([text])
    result.stdout.no_fnmatch_line("*session.py*")
    pytester.makeconftest(f"import pytest\n@pytest.fixture\ndef {fixture}():\n    return 1\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("'hi'", "E *a row is a dict with 'messages', a sample or a ConversationHistory; got str"),
        ("None", "E *a row is a dict with 'messages', a sample or a ConversationHistory; got NoneType"),
        ("[{'role': 'usr', 'content': 'hi'}]", "E *message 0: needs a role: *got 'usr'"),
    ],
)
def test_what_is_no_conversation_is_told_without_our_own_frames(
    pytester: pytest.Pytester, marker: str, expected: str
) -> None:
    pytester.makepyfile(f"{SPEAK}\ndef test_it():\n    viva_assert({marker}, expect=[{{'contains': 'a'}}])\n")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([expected])
    result.stdout.no_fnmatch_line("*direct cause*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_no_test_runs_outside_of_pytest() -> None:
    assert running_test() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        viva_assert(WORDS, expect=[{"contains": "today"}])


def test_conversations_of_one_test_are_told_apart(pytester: pytest.Pytester) -> None:
    body = "    viva_assert(spoken('May I?', 'yes'), expect=[{'contains': 'yes'}])\n"
    path = pytester.makepyfile(f"{SPEAK}\ndef test_it():\n{body}{body}")
    pytester.runpytest_inprocess("--keep-duplicates", path, path).assert_outcomes(passed=2)
    with Store.open(".vivavoce/vivavoce.db", create=False) as store:
        names = [attempt.key.sample_id.partition("::")[2] for attempt in store.attempts(store.runs()[0].id)]
    assert names == ["test_it", "test_it (2)", "test_it (3)", "test_it (4)"]


def test_two_calls_of_pytest_share_a_store(pytester: pytest.Pytester) -> None:
    body = "    viva_assert(spoken('May I?', 'yes'), expect=[{'contains': 'yes'}])\n"
    pytester.makepyfile(f"{SPEAK}\n@pytest.mark.parametrize('n', range(10))\ndef test_it(n):\n{body}")
    calls = [subprocess.Popen([sys.executable, "-m", "pytest", "-q"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [call.wait(timeout=60) for call in calls] == [0, 0]
    with Store.open(".vivavoce/vivavoce.db", create=False) as store:
        assert [store.counts(run.id) for run in store.runs()] == [(10, 0), (10, 0)]


def test_options_that_name_an_unknown_tool_are_refused() -> None:
    call: dict[str, Any] = {"role": "assistant", "tool_calls": [{"id": "1", "name": "refund", "arguments": {}}]}
    row: dict[str, Any] = {"messages": [WORDS[0], call, WORDS[1]], "reference_tool_calls": [{"name": "refund"}]}
    metric: Any = {"metric": "trajectory_match", "config": {"only": ["refnud"]}}
    with pytest.raises(UsageError, match="did you mean 'refund'"):
        viva_assert(row, metrics=[metric])
    with pytest.raises(UsageError, match="did you mean 'refund'"):
        viva_assert({**row, "expect": metric})
