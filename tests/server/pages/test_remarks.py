from __future__ import annotations

from vivavoce.store.store import Store

from ..live import get
from .cases import Elements
from .test_sign_in import fields, submit


def test_the_form_of_a_run_page_changes_title_notes_and_tags(server: str, store: Store) -> None:
    run = store.run("latest").id
    page = get(f"{server}/runs/{run}")
    given = {"title": "<i>Two</i>", "notes": "First line\nsecond", "tags": "v2, slow one,, v2"}
    done = submit(f"{server}/runs/{run}/remarks", {**fields(page), **given})
    assert (done.status, done.headers["location"]) == (303, f"/runs/{run}")
    stored_run = store.run(run)
    assert (stored_run.title, stored_run.notes, stored_run.tags) == (
        "<i>Two</i>",
        "First line\nsecond",
        ["v2", "slow one"],
    )
    elements = Elements(get(f"{server}/runs/{run}").text)
    assert "<i>Two</i> a run of refunds" in elements.text
    assert "First line second" in elements.text
    assert "v2, slow one" in elements.having("value")
    assert "/?tag=slow%20one" in elements.having("href")
    listed = Elements(get(f"{server}/?tag=slow+one").text)
    assert "<i>Two</i> refunds" in listed.text
    assert "tagged v2, slow one" in listed.text
    assert "No run matches" in get(f"{server}/?tag=slow").text


def test_a_form_from_elsewhere_or_too_long_changes_nothing(server: str, store: Store) -> None:
    run = store.run("latest").id
    assert submit(f"{server}/runs/{run}/remarks", {"title": "x"}).status == 403
    page = get(f"{server}/runs/{run}")
    long = submit(f"{server}/runs/{run}/remarks", {**fields(page), "title": "x" * 201})
    assert (long.status, "title: String should have at most 200" in long.text) == (422, True)
    assert store.run(run).title is None
