from __future__ import annotations

from vivavoce.server.replies import SearchPage
from vivavoce.store.store import Store

from ..live import get, serving
from ..pages.cases import keep, outcome, turn


def found(url: str, query: str) -> SearchPage:
    reply = get(f"{url}/api/v1/search?{query}")
    assert reply.status == 200, reply.text
    return SearchPage.model_validate_json(reply.body)


def test_words_are_found_in_what_was_said_with_their_place(server: str) -> None:
    (hit,) = found(server, "q=thanks").hits
    assert (hit.sample_id, hit.turn, hit.grading, hit.text[hit.start : hit.end]) == ("kind", 1, None, "Thanks")
    assert found(server, "q=nobody").hits == []


def test_hits_come_in_pages_newest_first_and_each_once(store: Store) -> None:
    for number in range(2):
        talks = [outcome(f"s{i}", [turn(0, "where is my parcel")], position=i) for i in range(5)]
        keep(store, talks, f"run-{number}", at=2000.0 + number)
    with serving(store) as url:
        seen: list[tuple[str, str]] = []
        after = ""
        while after is not None:
            page = found(url, f"q=parcel&limit=3{after and f'&after={after}'}")
            assert len(page.hits) <= 3
            seen += [(hit.run, hit.sample_id) for hit in page.hits]
            after = page.next
        assert (len(seen), len(set(seen))) == (10, 10)
        assert seen == sorted(seen, reverse=True)
        assert {hit.run for hit in found(url, "q=parcel&run=run-0").hits} == {"run-0"}


def test_a_place_whose_run_was_deleted_is_said_to_be_gone(store: Store) -> None:
    keep(store, [outcome(f"s{i}", [turn(0, "parcel")], position=i) for i in range(3)])
    with serving(store) as url:
        page = found(url, "q=parcel&limit=1")
        store.maintenance.collect(keep_last=0)
        reply = get(f"{url}/api/v1/search?q=parcel&after={page.next}")
        assert (reply.status, "start the list again" in reply.json()["detail"]) == (404, True)


def test_what_is_wrong_is_told(server: str) -> None:
    for query, status in (
        ("", 422),
        ("q=", 422),
        ("q=%E2%80%A6", 422),
        ("q=" + "+".join(f"w{number}" for number in range(17)), 422),
        ("q=a&after=x", 404),
        ("q=a&limit=0", 422),
        ("q=a&run=nothing", 404),
        ("q=%00%ED%A0%80a&run=latest", 200),
    ):
        assert get(f"{server}/api/v1/search?{query}").status == status, query
