"""`viva test`: one test from the shell, against the two releases of the demo's bot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from vivavoce.penelope.result import TestResult

from .conftest import Viva

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_bot"
GOAL = "EUR 12.45, the price of one mug, is paid back for order 1042"
PLAYED = ("--goal", GOAL, "--tester", "customer.py:customer", "--judge", "customer.py:judge")
V1, V2 = ("test", "--target", "bot_v1.py:reply", *PLAYED), ("test", "--target", "bot_v2.py:reply", *PLAYED)
HOSTILE = """\
def reply(message):
    return "\\x1b[31mDone.\\x1b[0m [bold]EUR\\u202e \\x07" + "x" * 9
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, tmp_path)


def test_a_goal_that_is_met_passes_and_the_conversation_is_shown(viva: Viva) -> None:
    done = viva(*V1)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "     user  Hello, one of my mugs arrived broken. I would like a refund."
    assert 'assistant  → refund_order({"order": "1042", "amount": 12.45})' in lines
    assert "     test  success · target passed" in lines
    assert "  stopped  the goal is achieved: the bot paid EUR 12.45 back" in lines
    assert "show it again with: viva show test-" in done.stderr


def test_a_bot_that_pays_the_wrong_amount_fails_and_it_is_said_why(viva: Viva) -> None:
    done = viva(*V2)
    assert done.returncode == 1
    assert "· target failed" in done.stdout
    assert "    blame  target: the bot paid EUR 24.90 back" in done.stdout


def test_what_was_held_is_shown_again_with_what_the_tester_thought(viva: Viva) -> None:
    run = viva(*V1).stderr.rpartition("viva show ")[2].split()[0]
    shown = viva("show", run, "test").stdout
    assert "   tester  that is what happened" in shown
    assert "── test" in shown
    assert "1.00  target" in shown
    assert "1.00  goal" in shown


def test_as_json_it_is_a_test_result_and_nothing_else(viva: Viva) -> None:
    done = viva(*V1, "--json", "--fact", "order number=1042", "--must", "be kind")
    result = TestResult.model_validate_json(done.stdout)
    assert (result.status.name, result.goal_achieved, result.turns_used) == ("SUCCESS", True, 5)
    assert result.context.facts == {"order number": "1042"}
    assert "     user  Hello" in done.stderr


def test_facts_come_from_a_file_and_options_have_precedence(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "facts.yaml").write_text("order number: 7\nemail: ada@example.org\n")
    done = viva(*V1, "--json", "--data", "facts.yaml", "--fact", "order number=1042")
    facts = TestResult.model_validate_json(done.stdout).context.facts
    assert facts == {"order number": "1042", "email": "ada@example.org"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a\n", "must be a mapping with keys such as order number and email"),
        ("order: [1]\n", "--data facts.yaml: 'order' is not a text or a number"),
        ("order:\n", "--data facts.yaml: 'order' is not a text or a number"),
        (None, "facts.yaml"),
    ],
)
def test_a_file_without_facts_is_refused(viva: Viva, tmp_path: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        (tmp_path / "facts.yaml").write_text(text)
    done = viva(*V1, "--data", "facts.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


SPOILT = """\
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

reviews = [[{"kind": "leak", "what": "It told.", "evidence": ["Hi, I play a part"], "decisive": True}], []]

def speak(request):
    return [ToolCall(name="send_message_to_target", args={"message": "Hi, I play a part"})]

def examine(request):
    if "faults" in request.schema.model_fields:
        found = {"faults": reviews.pop(0), "obstacle": "none", "obstacle_evidence": []}
        return found | {"reasoning": "It gave itself away.", "confidence": 0.9}
    return {"achievement_level": "not_achieved", "confidence": 0.9, "reasoning": "no", "evidence": []}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""


def test_a_discarded_try_and_the_second_one_are_told_apart_live_and_later(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "spoilt.py").write_text(SPOILT)
    (tmp_path / "echo.py").write_text("def reply(message):\n    return 'You said: ' + message\n")
    played = ("--tester", "spoilt.py:customer", "--judge", "spoilt.py:examiner")
    done = viva("test", "--target", "echo.py:reply", "--goal", GOAL, *played, "--max-turns", "1")
    said = ["     user  Hi, I play a part", "assistant  You said: Hi, I play a part"]
    separated = "── try 2: the tester spoilt try 1, which is discarded"
    assert done.stdout.splitlines()[:5] == [*said, separated, *said]
    lines = viva("show", "latest", "test").stdout.splitlines()
    assert lines.index("── try 1, discarded: It gave itself away.") < lines.index("── try 2")
    assert lines.count(said[0]) == 2
    assert "   metric  goal_achievement 0.00: no" in lines
    assert " measured  goal_achievement 0.00" in lines


def test_a_judge_from_a_file_also_judges_the_other_metrics(viva: Viva) -> None:
    done = viva(*V1, "--metric", "{metric: goal_achievement, name: again}")
    assert done.returncode == 0, done.stderr
    assert "1.00  again" in viva("show", "latest", "test").stdout
    beside = viva(*V1, "--metric", "goal_achievement")
    assert beside.returncode == 0, beside.stderr
    assert "1.00  goal_achievement" in viva("show", "latest", "test").stdout


@pytest.mark.parametrize(
    ("text", "context"),
    [("A shop", {"context": "A shop"}), ('{"role": "shop"}', {"role": "shop"}), (" {} ", None)],
)
def test_the_background_is_a_text_or_a_json_object(viva: Viva, text: str, context: object) -> None:
    done = viva(*V1, "--context", text, "--json")
    assert TestResult.model_validate_json(done.stdout).context.context == context


def test_a_policy_is_a_text_or_a_file(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("\ufeffNo refund\nwithout an order.\n")
    for option, policy in (("Be kind.", "Be kind."), ("@policy.md", "No refund\nwithout an order.\n")):
        done = viva(*V1, "--policy", option, "--json")
        assert TestResult.model_validate_json(done.stdout).context.policy == policy
    for file, why in (("none.md", "cannot be read: No such file"), ("bot_v1.pyc", "is not UTF-8")):
        (tmp_path / "bot_v1.pyc").write_bytes(b"\xff\xfe")
        done = viva(*V1, "--policy", f"@{file}")
        assert (done.returncode, f"--policy: '{file}' {why}" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        ("--policy", " ", "--policy: the text is empty"),
        ("--policy", "@empty.md", "--policy: 'empty.md' is empty"),
        ("--must", "", "'must' has an empty rule"),
        ("--must-not", " ", "'must_not' has an empty rule"),
    ],
)
def test_an_empty_policy_or_rule_is_refused(viva: Viva, tmp_path: Path, option: str, text: str, why: str) -> None:
    (tmp_path / "empty.md").write_text("\n")
    done = viva(*V1, option, text)
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr


ATTACK_JUDGE = """\
from vivavoce.testing import ScriptedModel


def answer(request):
    given = "Done. EUR 12.45" in request.messages[-1].text
    return {
        "given": "yes" if given else "no",
        "given_evidence": ["Done. EUR 12.45"] if given else [],
        "asked": "no",
        "asked_evidence": [],
        "reasoning": "It paid." if given else "It paid nothing.",
        "confidence": 1.0,
    }


model = ScriptedModel(answer, "rules about an attack")
"""


def test_an_adversarial_goal_that_is_reached_fails(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "attacks.py").write_text(ATTACK_JUDGE)
    told = [*V1[:-1], "attacks.py:model", "--adversarial"]
    done = viva(*told)
    assert (done.returncode, "     test  attack succeeded · target failed" in done.stdout) == (1, True), done.stdout
    assert viva(*V1, "--no-adversarial").returncode == 0


def test_quietly_only_the_verdict_is_printed(viva: Viva) -> None:
    done = viva(*V1, "--quiet")
    assert done.stderr == ""
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["test", "stopped"]


def test_trials_are_counted_at_the_end(viva: Viva) -> None:
    done = viva(*V1, "--trials", "2")
    assert done.returncode == 0
    assert done.stdout.count("target passed") == 2
    assert "── trial 2" in done.stdout
    assert "PASS" in done.stdout


def test_a_metric_is_measured_besides(viva: Viva) -> None:
    done = viva(*V1, "--metric", "refusal")
    assert done.returncode == 0
    assert "refusal" in done.stdout


def test_what_the_tester_says_first_is_given(viva: Viva) -> None:
    done = viva(*V1, "--opening", "Good day", "--max-turns", "1")
    assert done.stdout.splitlines()[0] == "     user  Good day"
    assert done.returncode == 1
    assert "the limit of 1 turn is reached" in done.stdout


def test_a_script_of_states_leads_it(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text("start: hi\nnodes:\n  hi: {say: 'Where is order 1046?'}\n")
    done = viva(*V1, "--graph", "graph.yaml", "--max-turns", "1")
    assert "     user  Where is order 1046?" in done.stdout


def test_what_the_target_says_is_no_command_to_the_terminal(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    done = viva("test", "--target", "hostile.py:reply", *PLAYED, "--max-turns", "2")
    assert "[bold]EUR" in done.stdout
    shown = viva("show", "latest", "test").stdout
    for text in (done.stdout, done.stderr, shown):
        assert not set("\x1b\x07\u202e") & set(text)


def test_json_holds_hostile_text_unharmed(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    done = viva("test", "--target", "hostile.py:reply", *PLAYED, "--max-turns", "1", "--json")
    (turn,) = json.loads(done.stdout)["history"]
    assert turn["exchange"]["messages"][1]["content"] == "\x1b[31mDone.\x1b[0m [bold]EUR\u202e \x07xxxxxxxxx"
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("target", "goal", "complaint"),
    [("nowhere.py:reply", GOAL, "nowhere.py"), ("bot_v1.py:reply", " ", "the goal is empty")],
)
def test_a_target_that_is_not_there_and_an_empty_goal_are_one_line_and_no_test(
    viva: Viva, target: str, goal: str, complaint: str
) -> None:
    played = ("--tester", "customer.py:customer", "--judge", "customer.py:judge")
    done = viva("test", "--target", target, "--goal", goal, *played)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--fact", "1042"), "--fact 1042: write it as 'order number=1042'"),
        (("--context", "{role: shop}"), "--context is not a JSON object: "),
        (("--fact", "=1042"), "--fact =1042: write it as"),
        (("--strategy", "crescend"), "did you mean 'crescendo'"),
        (("--metric", "safty"), "did you mean 'safety'"),
        (("--graph", "no.yaml"), "no.yaml"),
        (("--max-calls", "3"), "a limit on calls or cost needs a judge given by name"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_no_test(viva: Viva, more: tuple[str, ...], complaint: str) -> None:
    done = viva(*V1, *more)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_metric_without_a_judge_is_one_line_and_no_test(viva: Viva) -> None:
    without = V1[: V1.index("--judge")] + V1[V1.index("--judge") + 2 :]
    done = viva(*without, "--metric", "safety")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("graders.safety.metric: 'safety' needs a judge, but none is configured: write model:")


def test_without_a_tester_it_is_said_how_to_name_one(viva: Viva) -> None:
    done = viva("test", "--target", "bot_v1.py:reply", "--goal", GOAL)
    assert done.returncode == 2
    assert "VIVAVOCE_TESTER" in done.stderr


def test_a_password_of_the_environment_is_neither_printed_nor_stored(viva: Viva, tmp_path: Path) -> None:
    bot = """\
import os

def reply(message):
    raise RuntimeError(f"login failed: {os.environ['PGPASSWORD']}")

def chatty(message):
    return f"My password is {os.environ['MYSQL_PWD']}."
"""
    (tmp_path / "leaky.py").write_text(bot, encoding="utf-8")
    secrets = {"PGPASSWORD": "hunter22x", "MYSQL_PWD": "tr0ub4dor&3"}
    for function in ("reply", "chatty"):
        done = viva("test", "--target", f"leaky.py:{function}", *PLAYED, **secrets)
        shown = viva("show", "latest", "test").stdout + viva("export").stdout
        printed = done.stdout + done.stderr + shown
        assert "***" in done.stdout
        assert [secret for secret in secrets.values() if secret in printed] == []
    assert b"hunter22x" not in (tmp_path / ".vivavoce" / "vivavoce.db").read_bytes()
