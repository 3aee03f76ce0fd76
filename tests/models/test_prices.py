from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.models.prices import Price, price_of
from vivavoce.records.score import Usage

MINI = Price(input=0.4, cached_input=0.1, output=1.6)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "prices.json"
    monkeypatch.setenv("VIVAVOCE_PRICES", str(path))
    return path


def write(path: Path, **models: dict[str, Any]) -> None:
    path.write_text(json.dumps({"models": models}))


def test_a_cost_counts_cached_input_apart_and_reasoning_as_output() -> None:
    usage = Usage(
        input_tokens=1_000_000, cached_input_tokens=250_000, output_tokens=500_000, reasoning_tokens=400_000, calls=1
    )
    assert MINI.cost(usage) == pytest.approx(0.75 * 0.4 + 0.25 * 0.1 + 0.5 * 1.6)


def test_cached_input_without_a_price_of_its_own_costs_what_input_costs() -> None:
    assert Price(input=2, output=0).cost(Usage(input_tokens=1_000_000, cached_input_tokens=1_000_000)) == 2


@pytest.mark.parametrize(
    "name",
    ["openai:gpt-4.1-mini", "openai:gpt-4.1-mini-2025-04-14", "openai:gpt-4.1-mini-latest"],
)
def test_a_version_costs_what_its_family_costs(name: str) -> None:
    assert price_of(name) == MINI


def test_a_version_with_a_price_of_its_own_has_that() -> None:
    old, new = price_of("openai:gpt-4o-2024-05-13"), price_of("openai:gpt-4o-2024-11-20")
    assert old is not None
    assert new is not None
    assert (old.input, new.input) == (5.0, 2.5)


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5@20250929", "anthropic:claude-sonnet-4-5-20250929"])
def test_models_of_other_providers_are_known(name: str) -> None:
    assert price_of(name) == Price(input=3, cached_input=0.3, output=15)


@pytest.mark.parametrize(
    "name", ["openai:gpt-4.1-micro", "openai:gpt-4.1-mini-tuned", "gpt-4.1-mini", "http://localhost:11434/v1#qwen3"]
)
def test_any_other_model_has_no_known_price(name: str) -> None:
    assert price_of(name) is None


def test_the_users_table_adds_and_replaces(table: Path) -> None:
    free = {"input": 0, "output": 0}
    write(table, **{"http://localhost:11434/v1#qwen3": free, "openai:gpt-4.1-mini": {"input": 9, "output": 9}})
    assert price_of("http://localhost:11434/v1#qwen3") == Price(input=0, output=0)
    assert price_of("openai:gpt-4.1-mini-2025-04-14") == Price(input=9, output=9)
    assert price_of("openai:gpt-4.1-nano") is not None


def test_the_users_table_may_have_the_date_and_source_that_ours_has(table: Path) -> None:
    table.write_text(json.dumps({"as_of": "2026-01-31", "source": "our contract", "models": {}}))
    assert price_of("openai:gpt-4.1-mini") == MINI


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Invalid JSON"),
        ("{}", "models: is missing"),
        ('{"models": {"m": {"input": 1}}}', r"models\.m\.output: is missing"),
        ('{"models": {"m": {"input": -1, "output": 1}}}', r"models\.m\.input: .*greater than or equal to 0, got -1"),
        ('{"models": {"m": {"input": 1, "output": 1, "outptu": 2}}}', "unknown field"),
    ],
)
def test_a_wrong_table_is_the_users_mistake(table: Path, text: str, said: str) -> None:
    table.write_text(text)
    with pytest.raises(UsageError, match=f"VIVAVOCE_PRICES: .*prices.json is not a table of prices: .*{said}"):
        price_of("openai:gpt-4.1-mini")


def test_a_missing_table_is_the_users_mistake(table: Path) -> None:
    with pytest.raises(UsageError, match=r"VIVAVOCE_PRICES: .* cannot be read: No such file"):
        price_of("openai:gpt-4.1-mini")
