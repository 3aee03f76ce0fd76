"""`--max-cost`: what judges may cost, over real HTTP and with prices of the test's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .conftest import Viva

VERDICT: dict[str, Any] = {"reasoning": "It says so.", "evidence": [], "score": 1, "confidence": 1}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"message": {"content": json.dumps(VERDICT)}}], "usage": usage}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoopbackServer]:
    (tmp_path / "bot.py").write_text("def answer(message):\n    return 'ok'\n")
    (tmp_path / "d.jsonl").write_text("".join(f'{{"id": "{n}", "input": "x"}}\n' for n in range(6)))
    with LoopbackServer(answer) as server:
        (tmp_path / "suite.yaml").write_text(
            "name: costly\ndataset: d.jsonl\nmax_concurrent: 1\n"
            "target: {kind: function, function: 'bot.py:answer'}\n"
            f"graders:\n  good: {{kind: model_judge, prompt: Is it good?, model: '{server.base_url}#judge'}}\n"
        )
        yield server


@pytest.fixture
def prices(server: LoopbackServer, tmp_path: Path) -> str:
    """Let a verdict cost 0.1 dollars; a request of it has so many bytes that it might cost four times as much."""
    models = {f"{server.base_url}#judge": {"input": 1000, "output": 0}}
    (tmp_path / "prices.json").write_text(json.dumps({"models": models}))
    return str(tmp_path / "prices.json")


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_a_judge_without_a_price_is_named_before_anything_is_called(
    viva: Viva, server: LoopbackServer, option: tuple[str, ...]
) -> None:
    done = viva("run", "suite.yaml", "--no-cache", "--max-cost", "1", *option)
    assert done.returncode == 2
    assert f"suite.yaml:6:50 graders.good.model: the price of {server.base_url}#judge is unknown" in done.stderr
    assert "VIVAVOCE_PRICES" in done.stderr
    assert server.requests == []


def test_a_run_stops_before_it_costs_more_and_goes_on_with_more_money(
    viva: Viva, server: LoopbackServer, prices: str
) -> None:
    limit = 0.65
    done = viva("run", "suite.yaml", "--no-cache", "--max-cost", str(limit), VIVAVOCE_PRICES=prices)
    assert done.returncode == 3
    assert "INCONCLUSIVE: stopped after" in done.stdout
    spent = len(server.requests) * 0.1
    assert 0 < spent <= limit
    assert f"${limit} is spent" in done.stdout
    resumed = viva("run", "--resume", "costly", "--max-cost", "50", VIVAVOCE_PRICES=prices)
    assert resumed.returncode == 0
    with Store.open(".vivavoce/vivavoce.db") as store:
        run = store.run("costly")
        costs = [outcome.scores["good"].usage for outcome in store.outcomes(f"{run.id}-g1")]
    assert run.options["max_cost"] == limit
    assert [usage and usage.cost for usage in costs] == pytest.approx([0.1] * 6)


@pytest.mark.parametrize("tokens", [-1_000_000, "NaN", 1e300])
def test_a_usage_that_cannot_be_gives_no_money_back(
    viva: Viva, server: LoopbackServer, prices: str, tokens: object
) -> None:
    server.answer = lambda body: {**answer(body), "usage": {"prompt_tokens": tokens, "completion_tokens": tokens}}
    done = viva("run", "suite.yaml", "--no-cache", "--max-cost", "1.5", VIVAVOCE_PRICES=prices)
    assert (done.returncode, len(server.requests)) == (3, 3), "each call counts as what it may cost at most, about 0.45"
    assert "of $1.5 is spent" in done.stdout


def test_grading_again_stops_as_well(viva: Viva, server: LoopbackServer, prices: str) -> None:
    assert viva("run", "suite.yaml", "--no-cache").returncode == 0
    asked = len(server.requests)
    done = viva("grade", "--no-cache", "--max-cost", "0.01", VIVAVOCE_PRICES=prices)
    assert done.returncode == 3
    assert "stopped: the next call may cost $" in done.stdout
    assert len(server.requests) == asked


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "much"])
def test_a_limit_that_is_no_amount_is_refused(viva: Viva, server: LoopbackServer, amount: str) -> None:
    done = viva("run", "suite.yaml", "--no-cache", "--max-cost", amount)
    assert done.returncode == 2
    assert "--max-cost" in done.stderr
    assert "Traceback" not in done.stderr
