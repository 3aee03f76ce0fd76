"""The groups on the page of a run."""

from __future__ import annotations

import pytest

from server.live import get
from server.pages.cases import Elements, keep, outcome
from server.pages.test_run import names
from vivavoce.records.score import Score
from vivavoce.store.store import Store


def test_groups_lead_to_their_conversations(empty: Store, url: str) -> None:
    result = [
        outcome(f"s{i}", grades={"goal": Score(value=float(i % 2))}, target=("b 1", 'b"2')[i % 2], position=i)
        for i in range(6)
    ]
    keep(empty, result)
    page = Elements(get(f"{url}/runs/run-1?group=target").text)
    assert 'b"2 3 100.0%' in page.text
    assert "b 1 3 0.0% 0.0% to" in page.text
    assert "No conversation here has a tag" in get(f"{url}/runs/run-1?group=tag").text
    links = [
        attributes["href"]
        for _, attributes in page.tags
        if attributes.get("class") == "row" and "filter=target" in attributes.get("href", "")
    ]
    lists = [sorted(names(Elements(get(url + link.partition("#")[0]).text))) for link in links]
    assert sorted(lists) == [["s0", "s2", "s4"], ["s1", "s3", "s5"]]
    assert get(f"{url}/runs/run-1?group=colour").status == 422


def test_links_of_the_list_keep_the_grouping(empty: Store, url: str) -> None:
    keep(empty, [outcome("s", grades={"goal": Score(value=1.0)})])
    page = get(f"{url}/runs/run-1?group=target").text
    assert '<input type="hidden" name="group" value="target">' in page
    assert "sort=-turns&amp;group=target#samples" in page
    assert "group=" not in get(f"{url}/runs/run-1").text.partition("Group by")[0]


@pytest.mark.parametrize("wrong", ["%22", "goal%3C%3C"])
def test_a_filter_that_cannot_be_read_shows_no_groups(empty: Store, url: str, wrong: str) -> None:
    keep(empty, [outcome("s", grades={"goal": Score(value=1.0)})])
    answer = get(f"{url}/runs/run-1?group=target&filter={wrong}")
    assert (answer.status, "Group by" in answer.text, "stack groups" in answer.text) == (422, True, False)
