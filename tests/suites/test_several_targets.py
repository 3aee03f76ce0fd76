"""Suites with several targets: their names, their own limits, what is stored, and what the command line puts there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from vivavoce import Store, UsageError, run_suite
from vivavoce.run.execution import Execution
from vivavoce.suites.check import check_suite
from vivavoce.suites.command_line import described_target, read_targets
from vivavoce.suites.experiment import open_run, reopen_run
from vivavoce.suites.load import Suite, dump_spec, load_suite, stored_suite
from vivavoce.suites.targets import build_targets, target_limits
from vivavoce.testing import LoopbackServer

BOT = """\
def loud(message):
    return message.upper()

def meek(message):
    return message.lower()

async def gone(message):
    raise OSError("down")
"""
LOUD = '{kind: function, function: "bot.py:loud"}'
MEEK = '{kind: function, function: "bot.py:meek"}'
MODEL = "{kind: openai, base_url: 'http://localhost:1/v1', model_handles: [m], name: NAME}"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "bot.py").write_text(BOT)


def write_suite(*targets: str, more: str = "") -> Path:
    Path("suite.yaml").write_text(
        "name: s\n"
        + "dataset: {rows: [{id: a, input: Hi, ground_truth: HI}, {id: b, input: Ho, ground_truth: HO}]}\n"
        + "targets:\n"
        + "".join(f"  - {target}\n" for target in targets)
        + "graders: {right: {kind: function, function: exact_match}}\n"
        + more
    )
    return Path("suite.yaml")


def suite(*targets: str, more: str = "") -> Suite:
    return load_suite(write_suite(*targets, more=more))


def names(suite: Suite) -> list[str]:
    return [target.name for target in build_targets(suite, 4)]


def test_targets_of_several_kinds_each_answer_every_sample(tmp_path: Path) -> None:
    with LoopbackServer(lambda request: "HI") as server:
        model = f"{{kind: openai, base_url: '{server.base_url}', model_handles: [one, two], name: warm}}"
        result = run_suite(write_suite(LOUD, MEEK, model))
    means = {grader.target: grader.mean for grader in result.summary.graders}
    assert means == {"bot.loud": 1.0, "bot.meek": 0.0, "warm/one": 0.5, "warm/two": 0.5}
    assert result.summary.attempts == 8


def test_settings_and_prompts_of_each_target_are_its_own() -> None:
    seen: list[tuple[float, str]] = []

    def answer(request: dict[str, Any]) -> str:
        seen.append((request["temperature"], request["messages"][0]["content"]))
        return "HI"

    with LoopbackServer(answer) as server:
        common = f"{{kind: openai, base_url: '{server.base_url}', model_handles: [m]"
        run_suite(
            write_suite(
                f"{common}, name: cold, settings: {{temperature: 0}}, system_prompt: Be brief.}}",
                f"{common}, name: warm, settings: {{temperature: 1}}, system_prompt: Be kind.}}",
            )
        )
    assert sorted(seen) == [(0, "Be brief.")] * 2 + [(1, "Be kind.")] * 2


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([LOUD, MEEK], ["bot.loud", "bot.meek"]),
        (["{kind: openai, base_url: 'http://localhost:1', model_handles: [m], name: cold}"], ["cold"]),
        (["{kind: openai, base_url: 'http://localhost:1', model_handles: [m, n], name: cold}"], ["cold/m", "cold/n"]),
        (["{kind: openai, base_url: 'http://localhost:1', model_handles: [m, n]}"], ["m", "n"]),
        (["{kind: http, url: 'http://localhost:1', body: '{{ message }}'}"], ["http"]),
        (["{kind: letta, agent_id: a, base_url: 'http://localhost:1', name: mine}"], ["mine"]),
        (["{kind: letta, agent_id: a, base_url: 'http://localhost:1', model_handles: [m, n]}"], ["m", "n"]),
        (["{kind: letta_code, backend: local}", "{kind: letta_code, backend: local, name: b}"], ["letta_code", "b"]),
    ],
)
def test_what_targets_are_called(targets: list[str], expected: list[str]) -> None:
    assert names(suite(*targets)) == expected


@pytest.mark.parametrize(
    ("targets", "text"),
    [
        ([LOUD, MEEK, LOUD], "suite.yaml:6:5 targets.2: is the same target as targets.0; remove one of them"),
        (
            [
                "{kind: openai, base_url: 'http://localhost:1', model_handles: [m], settings: {temperature: 0}}",
                "{kind: openai, base_url: 'http://localhost:1', model_handles: [m, n], system_prompt: Be brief.}",
            ],
            "suite.yaml:5:5 targets.1: is called 'm', as targets.0 is, and differs in model_handles, settings, "
            "system_prompt; give each a name: of its own",
        ),
        (
            ["{kind: http, url: 'http://localhost:1', body: x}", "{kind: http, url: 'http://localhost:2', body: x}"],
            "targets.1: is called 'http', as targets.0 is, and differs in url; give each a name: of its own",
        ),
        (
            [LOUD, "{kind: letta_code, backend: local, name: bot.loud}"],
            "targets.1: is called 'bot.loud', as targets.0 is; give each a name: of its own",
        ),
        (
            ["{kind: openai, base_url: 'http://localhost:1', model_handles: [m, m], name: x}"],
            "suite.yaml:4:52 targets.0.model_handles: 'm' is listed twice",
        ),
        (
            [LOUD, "{kind: function, function: 'bot.py:lout'}"],
            "suite.yaml:5:5 targets.1: bot.py has no 'lout'; did you",
        ),
        (
            [LOUD, "bot.py:meek"],
            "suite.yaml:5:5 targets.1: needs a mapping, such as {kind: function, function: bot.py:meek}",
        ),
        ([LOUD, "{kind: functoin}"], "suite.yaml:5:6 targets.1.kind: no kind 'functoin'; did you mean 'function'?"),
        (
            [LOUD, "{kind: function, function: 'bot.py:meek', nam: x}"],
            "targets.1.nam: unknown key; did you mean 'name'?",
        ),
        ([LOUD, "{kind: function, function: 'bot.py:meek', name: ''}"], "targets.1.name: is empty"),
    ],
)
def test_a_mistake_in_one_of_the_targets_has_its_place(targets: list[str], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_suite(suite(*targets))
    assert text in str(caught.value)


def test_there_is_a_target_or_a_list_of_targets() -> None:
    with pytest.raises(UsageError, match="has a target and targets; put all of them into the list"):
        suite(LOUD, more=f"target: {MEEK}\n")
    Path("suite.yaml").write_text(write_suite(LOUD).read_text().replace(f"targets:\n  - {LOUD}", "targets: []"))
    with pytest.raises(UsageError, match=r"suite.yaml:3:1 targets: is empty; it needs at least one"):
        load_suite(Path("suite.yaml"))


def test_each_target_keeps_to_its_own_limits() -> None:
    suite_loaded = suite(
        "{kind: function, function: 'bot.py:loud', timeout: 5, max_retries: 0, max_concurrent: 2}",
        "{kind: function, function: 'bot.py:meek', max_concurrent: 50}",
        "{kind: http, url: 'http://localhost:1', body: '{{ message }}', timeout: 7, max_retries: 1}",
    )
    limits = [(limit.concurrency, limit.timeout, limit.retries) for limit in target_limits(suite_loaded, 15)]
    assert limits == [(2, 5.0, 0), (15, 300.0, 2), (15, None, 1)]
    assert check_suite(suite_loaded).fewer == {"bot.loud": 2}


def test_a_slow_target_has_no_more_conversations_at_a_time_than_it_may() -> None:
    Path("slow.py").write_text(
        "import asyncio\nnow = most = 0\n\nasync def slow(message):\n    global now, most\n    now += 1\n"
        "    most = max(most, now)\n    await asyncio.sleep(0.01)\n    now -= 1\n    return str(most)\n"
    )
    Path("suite.yaml").write_text(
        "name: s\ndataset: {rows: ["
        + ", ".join(f"{{id: s{i}, input: Hi}}" for i in range(12))
        + "]}\ntargets:\n  - {kind: function, function: 'slow.py:slow', max_concurrent: 2}\n"
        + f"  - {LOUD}\ngraders: {{said: {{kind: function, function: ascii_printable_only}}}}\n"
    )
    result = run_suite("suite.yaml")
    numbers = {
        int(outcome.attempt.trajectory.turns[0].messages[-1].text)
        for outcome in result.outcomes()
        if _of(outcome, "slow.slow")
    }
    assert max(numbers) == 2


def _of(outcome: Any, target: str) -> bool:
    return outcome.attempt.key.target == target


def test_the_list_is_stored_without_keys_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "k")
    suite_loaded = suite(LOUD, "{kind: letta, agent_id: a, api_key: s3cret-key, name: mine}")
    stored_fields = dump_spec(suite_loaded)
    assert "target" not in stored_fields
    assert stored_fields["targets"][1] == {
        "timeout": 300.0,
        "max_retries": 2,
        "name": "mine",
        "kind": "letta",
        "agent_id": "a",
        "model_handles": [],
        "cleanup": True,
    }


def test_a_suite_with_one_target_is_stored_as_before() -> None:
    Path("suite.yaml").write_text(write_suite(LOUD).read_text().replace("targets:\n  - ", "target: "))
    stored_fields = dump_spec(load_suite(Path("suite.yaml")))
    assert "targets" not in stored_fields
    assert stored_fields["target"] == {
        "timeout": 300.0,
        "max_retries": 2,
        "kind": "function",
        "function": "bot.py:loud",
    }


async def test_a_run_of_several_targets_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.db")) as store:
        path = write_suite(LOUD, "{kind: function, function: 'bot.py:gone', max_retries: 0}")
        first = await open_run(path, store=store).execute()
        assert first.summary.failed_attempts == 2
        Path("bot.py").write_text(BOT)
        again = await reopen_run(first.run.id, store=store, errors=True).execute()
        assert [grader.target for grader in again.summary.graders] == ["bot.loud", "bot.gone"]
        assert len(stored_suite(again.run).spec.all_targets) == 2
        Path("bot.py").write_text(BOT.replace("down", "up"))
        with pytest.raises(UsageError, match="the code of its target has changed since"):
            await _run_execution(reopen_run(first.run.id, store=store, errors=True))


async def _run_execution(work: Execution) -> None:
    await asyncio.wait_for(work.execute(), 10)


def test_several_names_replace_every_target_of_the_suite() -> None:
    suite = load_suite(write_suite(LOUD, MEEK), read_targets(["http://localhost:1/v1#m", "bot.py:meek"]))
    assert names(suite) == ["m", "bot.meek"]
    alone = load_suite(write_suite(LOUD, MEEK), read_targets(["bot.py:meek"]))
    assert alone.spec.targets is None
    assert names(alone) == ["bot.meek"]


def test_names_that_would_be_the_same_stay_as_they_are_written() -> None:
    Path("next").mkdir()
    Path("next/bot.py").write_text(BOT)
    suite = load_suite(write_suite(LOUD), read_targets(["bot.py:loud", "next/bot.py:loud", "bot.py:meek"]))
    assert names(suite) == ["bot.py:loud", "next/bot.py:loud", "bot.meek"]
    suite = load_suite(write_suite(LOUD), read_targets(["http://localhost:1/v1#m", "http://localhost:2/v1#m"]))
    assert names(suite) == ["http://localhost:1/v1#m", "http://localhost:2/v1#m"]


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--target: 'bot\.py:loud' is given twice"):
        read_targets(["bot.py:loud", "bot.py:meek", "bot.py:loud"])


def test_python_takes_several_targets_too() -> None:
    def old(message: str) -> str:
        return message

    def new(message: str) -> str:
        return message.upper()

    result = run_suite(write_suite(LOUD), target=[old, new])
    assert {grader.target: grader.mean for grader in result.summary.graders} == {"old": 0.0, "new": 1.0}
    described = run_suite(write_suite(LOUD), target=["bot.py:meek", {"kind": "function", "function": "bot.py:loud"}])
    assert [grader.target for grader in described.summary.graders] == ["bot.meek", "bot.loud"]
    with pytest.raises(UsageError, match="two targets are called 'old'"):
        run_suite(write_suite(LOUD), target=[old, old])
    with pytest.raises(UsageError, match="functions cannot be mixed with other targets"):
        run_suite(write_suite(LOUD), target=[old, "bot.py:loud"])


def test_a_set_up_meets_each_model_by_its_handle_whatever_the_target_is_called() -> None:
    Path("hooks.py").write_text(
        "def begin(model_handle):\n    with open('seen', 'a') as file:\n        file.write(model_handle + ' ')\n"
    )
    more = "setup_script: hooks.py:begin\n"
    with LoopbackServer(lambda request: "HI") as server:
        model = f"{{kind: openai, base_url: '{server.base_url}', model_handles: [one, two], name: warm}}"
        run_suite(write_suite(LOUD, model, more=more))
    assert Path("seen").read_text() == "bot.loud one two "


def test_variables_in_a_list_of_targets_are_stored_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TOKEN", "a-key-of-ours")
    monkeypatch.setenv("SECONDS", "7")
    remote = (
        "{kind: http, name: far, url: '${HOST}', headers: {Authorization: 'Bearer ${TOKEN}'}, timeout: '${SECONDS}'}"
    )
    suite_loaded = suite(LOUD, remote)
    assert [target_limit.timeout for target_limit in target_limits(suite_loaded, 4)] == [300.0, None]
    assert suite_loaded.spec.all_targets[("targets", 1)].timeout == 7
    target = dump_spec(suite_loaded)["targets"][1]
    assert (target["url"], target["headers"], target["timeout"]) == (
        "${HOST}",
        {"Authorization": "Bearer ${TOKEN}"},
        "${SECONDS}",
    )
    assert [described_target(one).names_and_models for one in dump_spec(suite_loaded)["targets"]] == [
        [("bot.loud", None)],
        [("far", None)],
    ]


def test_a_chat_model_given_without_the_tools_of_the_suite_is_noted() -> None:
    own = "{kind: openai, base_url: 'http://127.0.0.1:9/v1', model_handles: [m], system_prompt: Be kind., tools: []}"
    Path("suite.yaml").write_text(write_suite(LOUD).read_text().replace(f"targets:\n  - {LOUD}", f"target: {own}"))
    other = load_suite(Path("suite.yaml"), read_targets(["http://127.0.0.1:9/v1#n"]))
    assert other.notes == ("the target given in place of the suite's own goes without its system_prompt, tools",)
    assert load_suite(Path("suite.yaml"), read_targets(["bot.py:loud"])).notes == ()
    assert load_suite(Path("suite.yaml")).notes == ()


def test_the_times_of_targets_stand_in_the_order_of_the_suite() -> None:
    names = [latency.target for latency in run_suite(write_suite(MEEK, LOUD)).summary.latency]
    assert names == ["bot.meek", "bot.loud"]
