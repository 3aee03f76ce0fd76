from __future__ import annotations

from urllib.parse import quote_plus

import pytest

from vivavoce.messages import ToolMessage
from vivavoce.records.label import remarks_of
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import Score
from vivavoce.store.store import Store

from ..live import get
from .cases import Elements, everywhere, keep, outcome, turn
from .hostile import TEXTS


@pytest.fixture
def talks(empty: Store) -> Store:
    """A store with conversations about refunds in two runs, the newer one of a suite called billing."""
    keep(
        empty,
        [
            outcome("asked", [turn(0, "Hello"), turn(1, "I want a refund", "No refund today")]),
            outcome(
                "done",
                [turn(0, "Hi", ToolMessage(content="refund booked", tool_call_id="c"))],
                {"goal": Score(value=0.0, reason="the refund was late")},
                position=1,
            ),
        ],
    )
    keep(empty, [outcome("other", [turn(0, "refund?")])], "run-2", suite="billing refunds", at=1_800_000_000.0)
    return empty


def shown(url: str, query: str, more: str = "", status: int = 200) -> Elements:
    reply = get(f"{url}/search?q={quote_plus(query)}{more}")
    assert reply.status == status, reply.text
    return Elements(reply.text)


def hits(page: Elements) -> list[str]:
    return [found["href"] or "" for tag, found in page.tags if tag == "a" and found.get("class") == "row"]


def test_hits_are_grouped_and_lead_to_the_very_turn(talks: Store, url: str) -> None:
    page = shown(url, "refund")
    assert hits(page) == [
        "/runs/run-2",
        "/runs/run-2/samples/other?trial=1&from=1&target=bot#t1",
        "/runs/run-1/samples/done?trial=1&from=1&target=bot#t1",
        "/runs/run-1/samples/asked?trial=1&from=2&target=bot#t2",
        "/runs/run-1/samples/done?trial=1&target=bot&grading=run-1-g1#verdict",
    ]
    assert [tag for tag, _ in page.tags].count("mark") == 4
    for link in hits(page):
        assert get(url + link.partition("#")[0]).status == 200


def test_an_operator_narrows_what_is_shown(talks: Store, url: str) -> None:
    assert [link.split("?")[0] for link in hits(shown(url, "refund role:tool"))] == ["/runs/run-1/samples/done"]
    assert hits(shown(url, "suite:billing* refund")) == hits(shown(url, "refund"))[:2]
    only = hits(shown(url, "refund", "&kind=reason"))
    assert [link.split("?")[0] for link in only] == ["/runs/run-1/samples/done"]


def test_a_mistake_is_told_beside_the_box_with_what_was_meant(talks: Store, url: str) -> None:
    page = shown(url, "sute:billing refund", status=422)
    assert "no operator 'sute'; did you mean 'suite'?" in page.text
    assert "sute:billing refund" in page.having("value")
    assert "Nothing found" not in page.text
    assert "did you mean 'billing refunds'?" in shown(url, 'refund suite:"billing refun"', status=422).text
    assert "there is no word to search for" in shown(url, "…", status=422).text
    assert "start the list again" in shown(url, "refund", "&after=x", status=404).text


def test_comments_lead_to_themselves_and_titles_to_their_runs(talks: Store, url: str) -> None:
    for at, text in enumerate(TEXTS):
        talks.comments.add("run-1", AttemptKey("asked", "bot", 0), at % 2, "I<b>da", f"odd {text}")
    talks.comments.add("run-1", AttemptKey("asked", "bot", 0), None, "Olu", "odd one")
    talks.remark("run-2", remarks_of({"title": "An odd <i>one</i>", "tags": ["<u>v2"]}), "Ida")
    page = shown(url, "odd")
    run, whole, last, *_ = hits(page)
    assert (run, whole) == ("/runs/run-2", f"/runs/run-1/samples/asked?trial=1&target=bot#c{len(TEXTS) + 1}")
    assert last.endswith(f"#c{len(TEXTS)}")
    for link in (whole, last):
        assert link.partition("#")[2] in Elements(get(url + link.partition("#")[0]).text).having("id")
    assert "An odd <i>one</i>" in page.text
    everything = [get(f"{url}/search?q=odd&kind=comment").text, get(f"{url}/search?q=odd").text]
    assert all("<script>xss" not in text and "<b>da" not in text and "<u>v2" not in text for text in everything)
    alone = shown(url, "odd", "&kind=comment")
    (following,) = [link for link in alone.having("href") if "after=" in link]
    assert not set(hits(alone)) & set(hits(Elements(get(url + following).text)))
    found = get(f"{url}/api/v1/search?q=odd").json()
    assert (found["hits"], len(found["comments"]), [one["id"] for one in found["runs"]]) == ([], 20, ["run-2"])
    alone_found = get(f"{url}/api/v1/search?q=odd&kind=comment&limit=1").json()
    assert [(one["by"], one["comment"]) for one in alone_found["hits"]] == [("Olu", len(TEXTS) + 1)]


def test_nothing_found_is_said(talks: Store, url: str) -> None:
    assert "Nothing found" in shown(url, "unheard").text


def test_pages_of_one_kind_follow_each_other(talks: Store, url: str) -> None:
    keep(talks, [outcome(f"s{at}", [turn(0, "refund")], position=at) for at in range(40)], "run-3", at=1_900_000_000.0)
    page = shown(url, "refund role:user")
    assert len(hits(page)) == 8
    following = next(link for link in page.having("href") if "kind=conversation" in link and "&after=" in link)
    second = Elements(get(url + following).text)
    assert len(hits(second)) == 30
    last = Elements(get(url + next(link for link in second.having("href") if "&after=" in link)).text)
    names = [link.split("?")[0] for page in (page, second, last) for link in hits(page)]
    assert len(names) == len(set(names)) == 42


def test_without_a_query_the_operators_are_explained_with_links_that_work(talks: Store, url: str) -> None:
    page = shown(url, "")
    examples = [link for link in page.having("href") if link.startswith("/search?q=")]
    assert len(examples) == 12
    for link in examples:
        assert get(url + link).status in (200, 422)


def test_every_page_has_the_box(talks: Store, url: str) -> None:
    for path in ("/", "/runs/run-1", "/compare", "/trends", "/jobs", "/label", "/runs/nobody", "/sign-in"):
        page = Elements(get(url + path).text)
        assert "/search" in page.having("action"), path
        assert "seek" in page.having("id"), path


def test_the_names_of_the_store_complete_what_one_types(talks: Store, url: str) -> None:
    reply = get(f"{url}/search/names")
    assert reply.headers["cache-control"] == "no-store"
    known = {one["name"]: one["values"] for one in reply.json()["operators"]}
    assert known["suite"] == ['"billing refunds"', "support"]
    assert known["grader"] == ["goal"]
    assert known["run"] == ["latest", "run-2", "run-1"]
    assert [one["link"] for one in reply.json()["runs"]] == ["/runs/run-2", "/runs/run-1"]


@pytest.mark.parametrize("number", range(0, len(TEXTS), 7))
def test_hostile_texts_stay_texts(empty: Store, url: str, number: int) -> None:
    text = TEXTS[number]
    keep(empty, [everywhere(text)], "run-x", suite=text)
    plain = Elements(get(f"{url}/search?q=nothing").text)
    page = shown(url, '"' + text.replace('"', "") + '"')
    known = {tag for tag, _ in plain.tags} | {"mark", "section", "ul", "li", "h2", "svg", "use", "footer", "code"}
    assert {tag for tag, _ in page.tags} <= known
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]
    for name in ("href", "src", "action"):
        assert all(link.startswith(("/", "#")) and link[:2] != "//" for link in page.having(name))
