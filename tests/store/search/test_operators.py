"""What each operator of a search selects, in both databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from vivavoce.records.label import remarks_of
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Score, failed
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.search import search
from vivavoce.store.store import Store

from ..cases import BROKEN
from ..postgresql import Server

OCTOBER, NOVEMBER = (datetime(2026, month, 15).timestamp() for month in (10, 11))

PRINTS = {"goal": "f1", "polite": "f2"}


def talk(name: str, user: str, bot: str = "Fine.", tool: str | None = None, **more: Any) -> Outcome:
    """Return a conversation of one turn; `goal` is its score, None for an error, `why` its reason."""
    given = {**_MORE, **more}
    goal, why, tags, target = given["goal"], given["why"], given["tags"], given["target"]
    said: list[AnyMessage] = [HumanMessage(content=user), AIMessage(content=bot)]
    if tool:
        said.append(ToolMessage(content=tool, tool_call_id="c"))
    attempt = Attempt(
        key=AttemptKey(name, target, 0),
        scenario=name,
        sample=json.dumps({"id": name, "tags": tags}),
        trajectory=Trajectory(turns=[Turn(index=0, messages=said)]),
        started_at=1.0,
        position=more.get("position", 0),
    )
    score = failed(BROKEN) if goal is None else Score(value=goal, passed=goal >= 0.5, reason=why)
    return Outcome(attempt=attempt, scores={"goal": score, "polite": Score(value=1, passed=True, reason="kind words")})


_MORE: dict[str, Any] = {"goal": 1.0, "why": None, "tags": [], "target": "bot"}


def keep(store: Store, run: str, outcomes: Sequence[Outcome], suite: str = "support", at: float = OCTOBER) -> None:
    store.add_run(Run(id=run, suite=suite, spec={}, base="/", started_at=at, version="1"))
    grading = Grading(id=f"{run}.1", run_id=run, spec={}, fingerprints=PRINTS, created_at=at)
    store.add_grading(grading)

    async def write() -> None:
        async with store.writer(run, grading.id, PRINTS) as writer:
            for one in outcomes:
                await writer.put(one)

    asyncio.run(write())


@contextmanager
def opened_office(address: str) -> Generator[Store]:
    """Open a store and put two runs of two suites into it."""
    with Store.open(address) as store:
        keep(
            store,
            "run-old",
            [
                talk("a", "I want a refund", "No refund", goal=0.0, why="no refund was given", tags=["slow"]),
                talk("b", "Hello", "Your refund is here", tool="refund booked", position=1),
                talk("c", "refund, goodwill", goal=None, tags=["slow", "odd"], position=2),
            ],
        )
        keep(
            store,
            "run-new",
            [talk("d", "A refund please", why="the refund came", target="other")],
            "Billing Bot",
            NOVEMBER,
        )
        yield store


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with two runs of two suites, which tests only read."""
    if request.param == "sqlite":
        with opened_office(str(tmp_path_factory.mktemp("office") / "s.db")) as store:
            yield store
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.database() as address, opened_office(address) as store:
        yield store


@pytest.fixture
def own_office(address: str) -> Iterator[Store]:
    """The same store for a test that changes it."""
    with opened_office(address) as store:
        yield store


def found(store: Store, query: str) -> list[str]:
    """Return the names of the hits, those of reasons with the grader."""
    return [
        hit.key.sample_id if hit.grading_id is None else f"{hit.key.sample_id}/{hit.by}" for hit in store.search(query)
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("refund", {"a", "a/goal", "b", "c", "d", "d/goal"}),
        ("refund run:run-old", {"a", "a/goal", "b", "c"}),
        ("refund run:latest", {"d", "d/goal"}),
        ("refund -run:latest role:assistant", {"a", "b"}),
        ('refund suite:"billing bot"', {"d", "d/goal"}),
        ("refund suite:bill*", {"d", "d/goal"}),
        ("refund -suite:support", {"d", "d/goal"}),
        ("refund target:other", {"d", "d/goal"}),
        ("refund -target:other role:user", {"a", "c"}),
        ("refund suite:support suite:bill* role:user", {"a", "c", "d"}),
        ("refund before:2026-11-01 role:tool", {"b"}),
        ("refund after:2026-11-15", {"d", "d/goal"}),
        ("refund after:2026-11-16", set[str]()),
        ("refund tag:slow", {"a", "a/goal", "c"}),
        ("refund tag:slow -tag:odd", {"a", "a/goal"}),
        ("please tag:slow", set[str]()),
        ("refund state:fail", {"a", "a/goal"}),
        ("refund state:error", {"c"}),
        ("refund state:fail state:error", {"a", "a/goal", "c"}),
        ("refund -state:pass", {"a", "a/goal", "c"}),
        ("refund grader:goal", {"a/goal", "d/goal"}),
        ("words grader:polite run:latest", {"d/polite"}),
        ("refund -grader:goal state:pass", {"a", "b", "c", "d"}),
        ("refund grader:goal state:pass", {"b", "d", "d/goal"}),
        ("refund -goodwill role:user", {"a", "d"}),
        ('"refund please"', {"d"}),
        ("role:user please refund", {"d"}),
        ("role:user refund fine", set[str]()),
        ("state:error", {"c", "c/goal"}),
        ("state:fail -refund", set[str]()),
        ("tag:odd role:user", {"c"}),
        ("target:other -please grader:polite", {"d/polite"}),
    ],
)
def test_an_operator_selects(office: Store, query: str, names: set[str]) -> None:
    hits = found(office, query)
    assert {*hits} == names
    assert len(hits) == len(names)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("refund suite:suport", "no suite 'suport'; did you mean 'support'?"),
        ("refund target:othr", "no target 'othr'; did you mean 'other'?"),
        ("refund run:nothing", "no run 'nothing'"),
        ("refund grader:gaol", "no grader 'gaol'; did you mean 'goal'?"),
        ("refund tag:slw", "no tag 'slw' in the newest runs; did you mean 'slow'?"),
    ],
)
def test_a_name_that_nothing_has_is_told(office: Store, query: str, told: str) -> None:
    with pytest.raises(NotFound, match=r"^no ") as refused:
        office.search(query)
    assert told in str(refused.value)


def test_a_hit_shows_the_message_with_most_of_the_words(office: Store) -> None:
    (hit,) = office.search("role:tool booked refund")
    assert hit.snippet.text == "refund booked"
    (hit,) = office.search("here refund role:assistant")
    assert (hit.by, hit.turn, hit.snippet) == ("assistant", 0, ("Your refund is here", 5, 11))


def test_runs_are_found_by_what_names_them(office: Store) -> None:
    runs = office.searcher.runs
    assert runs("billing") == ["run-new"]
    assert runs("run") == ["run-new", "run-old"]
    assert runs("run -billing") == ["run-old"]
    assert runs("other") == ["run-new"]
    assert runs("before:2026-11-01") == ["run-old"]
    assert runs("suite:support after:2026-11-01") == []
    assert runs("run state:fail") == []


def test_runs_are_found_by_what_people_say_of_them(own_office: Store) -> None:
    own_office.remark(
        "run-old", remarks_of({"title": "Before Sérum", "notes": "prompt\ntwo", "tags": ["slow one"]}), "Ida"
    )
    for words in ("serum", '"prompt two"', '"slow one"', "before prompt suite:support"):
        assert own_office.searcher.runs(words) == ["run-old"], words
    assert own_office.searcher.runs("run -prompt") == ["run-new"]


def test_comments_are_found_with_their_turn_and_author(own_office: Store) -> None:
    first = next(own_office.attempts("run-old")).key
    other = next(own_office.attempts("run-new")).key
    one = own_office.comments.add("run-old", first, 0, "Ida", "Why no\nREFUND here?")
    two = own_office.comments.add("run-new", other, None, "Olu", "a refund, or goodwill")

    def told(query: str, run: str | None = None) -> list[int | None]:
        return [hit.comment for hit in own_office.searcher.find(query, run_id=run, kind="comment").hits]

    hit = own_office.searcher.find('"no refund"', kind="comment").hits[0]
    assert (hit.run_id, hit.key, hit.turn, hit.by, hit.comment) == ("run-old", first, 0, "Ida", one.id)
    assert hit.snippet.text[hit.snippet.start : hit.snippet.end].split() == ["no", "REFUND"]
    assert told("refund") == [two.id, one.id]
    assert told("refund -goodwill") == [one.id]
    assert told("refund suite:support") == [one.id]
    assert told("run:run-new") == [two.id]
    assert told("refund", "run-old") == [one.id]
    assert told(f"refund -target:{other.target}") == ([] if first.target == other.target else [one.id])
    for nothing in ("unheard", "refund state:fail", "refund role:user", "refun"):
        assert told(nothing) == []
    assert all(hit.comment is None for hit in own_office.search("refund"))


def test_pages_of_comments_follow_each_other(own_office: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.store.search.runs.STEP", 3)
    monkeypatch.setattr("vivavoce.store.search.runs.MOST_READ", 6)
    key = next(own_office.attempts("run-old")).key
    texts = ["rare" if at % 5 == 0 else "often" for at in range(20)]
    added = [(own_office.comments.add("run-old", key, None, "Ida", text).id, text) for text in texts]
    for query in ("rare", "often"):
        found: list[int | None] = []
        before, pages = None, 0
        while pages == 0 or before is not None:
            page = own_office.searcher.find(query, kind="comment", limit=4, before=before)
            found += [hit.comment for hit in page.hits]
            before, pages = page.next, pages + 1
        assert found == [number for number, text in reversed(added) if text == query]
        assert pages > 2


def test_pages_follow_each_other_also_where_most_is_sieved_out(
    own_office: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FIRST_STEP", 3)
    monkeypatch.setattr(search, "MOST_READ", 7)
    many = [talk(f"m{number}", "a refund", goal=float(number % 20 != 0), position=number) for number in range(60)]
    keep(own_office, "run-many", many)
    wanted = [hit.number for hit in own_office.search("refund state:fail run:run-many", limit=99)]
    assert len(wanted) == 3
    numbers: list[int] = []
    before: int | None = None
    pages = 0
    while True:
        page = own_office.searcher.find("refund state:fail run:run-many", limit=2, before=before)
        numbers += [hit.number for hit in page.hits]
        pages += 1
        if (before := page.next) is None:
            break
    assert numbers == wanted
    assert pages > 5


def test_many_runs_are_searched_as_few_are(office: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    few = found(office, "refund before:2026-12-01")
    monkeypatch.setattr(search, "MOST_RUNS", 0)
    assert found(office, "refund before:2026-12-01") == few
    assert found(office, "refund suite:support") == ["c", "b", "a/goal", "a"]


def test_a_long_conversation_is_one_hit(own_office: Store) -> None:
    keep(own_office, "run-long", [talk("long", "refund " + "word " * 20_000 + "refund")])
    assert found(own_office, "refund run:run-long") == ["long"]
    page = own_office.searcher.find("refund", limit=1)
    assert page.next is not None
    assert "long" not in [hit.key.sample_id for hit in own_office.searcher.find("refund", before=page.next).hits]


def test_a_number_of_another_search_is_refused(office: Store) -> None:
    with pytest.raises(UsageError, match="no cursor"):
        office.searcher.find("refund", before=10**6)
