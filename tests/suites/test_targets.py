"""From the target of a suite to the systems under test."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.stored import dump_spec
from vivavoce.suites.targets import build_targets
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
    found = suite(
        tmp_path,
        "{kind: openai, base_url: '${BASE_OF_A_BOT}', model_handles: [m], settings: {user: 'x ${SEED_OF_A_BOT}'},"
        " system_prompt: 'Say ${THIS}'}",
    )
    [target] = build_targets(found, 1)
    assert isinstance(target, OpenAITarget)
    assert target.endpoint.url.startswith("http://localhost:1/v1")
    assert target.body["user"] == "x a very secret seed"
    assert target.opening[0].text == "Say ${THIS}"
    assert "secret seed" not in str(dump_spec(found))


@pytest.mark.parametrize(
    ("target", "said"),
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
def test_a_variable_that_is_not_set_is_an_error(tmp_path: Path, target: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build_targets(suite(tmp_path, target), 1)
