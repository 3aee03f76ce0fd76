from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from report.trend_cases import keep, says
from server.live import get, serving
from vivavoce.client import AsyncClient, Client
from vivavoce.errors import UsageError
from vivavoce.features.trends.trends import Trend, trend
from vivavoce.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with five runs of a suite."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        for number in range(5):
            keep(store, number, says("goal", number / 10), says("tone", 1.0), version=str(number // 3))
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def test_a_trend_comes_as_the_library_has_it(store: Store, url: str) -> None:
    answer = get(f"{url}/api/v1/trends?suite=shop&grader=tone")
    assert answer.status == 200
    assert Trend.model_validate_json(answer.body) == trend(store, "shop", "tone")
    assert answer.json()["points"][3]["changes"] == [
        {"kind": "version", "differences": [{"name": "version", "before": "0", "after": "1"}]}
    ]


def test_a_part_is_asked_for_by_its_ends(url: str) -> None:
    response = get(f"{url}/api/v1/trends?suite=shop&from=shop-001&to=shop-003").json()
    assert [point["run"] for point in response["points"]] == ["shop-001", "shop-002", "shop-003"]
    assert (response["earlier"], response["later"]) == ("shop-000", "shop-004")


@pytest.mark.parametrize(
    ("query", "status", "complaint"),
    [
        ("suite=shp", 404, "no suite 'shp'; did you mean 'shop'?"),
        ("suite=shop&from=x", 404, "no run 'x' in suite 'shop'"),
        ("suite=shop&grader=gaol", 404, "no grader 'gaol' in these runs of 'shop'; did you mean 'goal'?"),
        ("suite=shop&limit=0", 422, "query.limit"),
        ("grader=goal", 422, "query.suite"),
    ],
)
def test_what_cannot_be_answered_is_said(url: str, query: str, status: int, complaint: str) -> None:
    answer = get(f"{url}/api/v1/trends?{query}")
    assert (answer.status, answer.json()["detail"].startswith(complaint)) == (status, True)


def test_the_client_asks_for_the_same(store: Store, url: str) -> None:
    with Client(url) as client:
        assert client.trends("shop") == trend(store, "shop")
        assert client.trends("shop", "tone", "bot", last="shop-002", limit=2) == trend(
            store, "shop", "tone", "bot", last="shop-002", limit=2
        )
        with pytest.raises(UsageError, match="did you mean 'shop'"):
            client.trends("shp")


async def test_the_client_that_waits_does_too(store: Store, url: str) -> None:
    async with AsyncClient(url) as client:
        assert await client.trends("shop", first="shop-001") == trend(store, "shop", first="shop-001")
