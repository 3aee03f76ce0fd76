"""From the target of a suite to the systems under test."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.load import Suite, dump_spec, load_suite
from vivavoce.suites.targets import build_targets, target_limits
from vivavoce.targets.openai import OpenAITarget


def suite(folder: Path, target: str) -> Suite:
    (folder / "suite.yaml").write_text(
        f"name: s\ndataset: d.jsonl\ntarget: {target}\ngraders: {{g: {{kind: tool, function: contains}}}}\n"
    )
    return load_suite(folder / "suite.yaml")


def test_what_a_target_takes_from_the_environment_is_not_in_the_stored_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_OF_A_BOT", "http://localhost:1/v1")
    monkeypatch.setenv("SEED_OF_A_BOT", "a very secret seed")
    suite_loaded = suite(
        tmp_path,
        "{kind: openai, base_url: '${BASE_OF_A_BOT}', model_handles: [m], settings: {user: 'x ${SEED_OF_A_BOT}'},"
        " system_prompt: 'Say ${THIS}'}",
    )
    [target] = build_targets(suite_loaded, 1)
    assert isinstance(target, OpenAITarget)
    assert target.endpoint.url.startswith("http://localhost:1/v1")
    assert target.body["user"] == "x a very secret seed"
    assert target.opening[0].text == "Say ${THIS}"
    assert "secret seed" not in str(dump_spec(suite_loaded))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            "{kind: openai, base_url: '${GONE}/v1', model_handles: [m]}",
            "base_url: the environment variable GONE is",
        ),
        ("{kind: http, url: '${GONE}', body: '{{ message }}'}", "http.url: the environment variable GONE is not set"),
        ("{kind: http, url: 'http://a', body: ['{{ message }} ${GONE}']}", "http.body: the environment variable GONE"),
        ("{kind: letta, agent_id: a, api_key: '${GONE}'}", "api_key: the environment variable GONE is not set"),
        ("{kind: openai, base_url: 'http://a', model_handles: ['${M}']}", r"target.model_handles.0: .* M is not set"),
        ("{kind: function, function: 'b.py:f', name: '${N}'}", "target.name: the environment variable N is not set"),
    ],
)
def test_a_variable_that_is_not_set_is_an_error(tmp_path: Path, target: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        build_targets(suite(tmp_path, target), 1)


@pytest.mark.parametrize(
    ("target", "name", "limit"),
    [
        ("{kind: websocket, url: 'ws://127.0.0.1:1/talk', piece: delta, end: {type: done}}", "websocket", 4),
        ("{kind: a2a, url: 'http://127.0.0.1:1', name: desk}", "desk", 4),
        ("{kind: mcp, command: [python, server.py], tool: ask}", "ask", 4),
        ("{kind: terminal}", "terminal", 1),
    ],
)
def test_each_kind_of_target_has_a_name_and_its_own_limit(tmp_path: Path, target: str, name: str, limit: int) -> None:
    suite_loaded = suite(tmp_path, target)
    [built] = build_targets(suite_loaded, 4)
    [own] = target_limits(suite_loaded, 4)
    assert (built.name, built.stateless, own.concurrency) == (name, False, limit)


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("{kind: mcp, tool: ask}", "needs either command or url"),
        ("{kind: websocket, url: 'ws://a', piece: delta}", r"websocket\.piece: needs end"),
        ("{kind: websocket, url: 'ws://me:secret@a'}", "user name"),
        (
            "{kind: websocket, url: 'ws://a', headers: {Authorization: Bearer k}}",
            "contains a key, which would be",
        ),
        ("{kind: terminal, max_concurrent: 2}", "max_concurrent"),
        ("{kind: function, function: 'b.py:f', stream: true}", "stream: a function returns its whole reply"),
        ("{kind: function, function: 'b.py:nothing'}", "a function is needed, or an object of the OpenAI Agents SDK, "),
    ],
)
def test_what_does_not_fit_is_an_error_before_anything_runs(tmp_path: Path, target: str, rule: str) -> None:
    tmp_path.joinpath("b.py").write_text("def f(message):\n    return message\n\nnothing = 5\n")
    with pytest.raises(UsageError, match=rule):
        build_targets(suite(tmp_path, target), 1)
