from __future__ import annotations

import base64
import gzip
import html
import json
import random
import re
from pathlib import Path

import pytest

from conversations import REFUND, by, calls, says, user
from kept import kept_test, kept_turn
from vivavoce.messages import AIMessage, SystemMessage, read_messages, split_turns
from vivavoce.records.score import Evidence, Finding, Score, Usage, failed
from vivavoce.records.trajectory import Turn
from vivavoce.server.pages.conversation import neighbours
from vivavoce.store.browse.filter import parse_filter
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.store import Store

from ..live import get
from .cases import BROKEN, Elements, called, keep, outcome, per_turn, turn

QUOTE = Evidence(text="no refund, ever", turn=1, verified=True)
TOOL = Evidence(text='"state": "paid"', turn=1, verified=True)
LOST = Evidence(text="sorry about that", turn=None, verified=False)
CALL = Evidence(text="c0", kind="call", turn=1, verified=True)


LEAKED = {
    "kind": "violation",
    "what": "it told a secret",
    "verdict": "violation",
    "state": "fail",
    "evidence": [{"text": "as you wish", "turn": 1, "verified": False}],
}


def judged() -> Score:
    paid = Finding(
        kind="criterion",
        what="the money is paid back",
        verdict="not met",
        state="fail",
        turn=1,
        evidence=(QUOTE, TOOL, LOST),
    )
    polite = Finding(kind="criterion", what="it is polite", verdict="met", state="pass", evidence=(CALL,))
    return Score(value=0.0, reason="It refused.", findings=(paid, polite), usage=Usage(calls=1, cost=0.25))


def read(url: str, path: str) -> Elements:
    answer = get(url + path)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Elements(answer.text)


def test_turns_stand_with_what_was_said_and_what_is_said_of_them(empty: Store, url: str) -> None:
    turns = [turn(0, "Hello", "Hi there", seconds=0.25), turn(1, "Bye", "No", usage=Usage(output_tokens=7, calls=1))]
    keep(empty, [outcome("kind", turns, {"tone": per_turn(1.0, 0.0)}, opening=[SystemMessage(content="Be kind.")])])
    page = read(url, "/runs/run-1/samples/kind")
    assert "1 User Copy link to turn 1 Hello Assistant Hi there 250 ms" in page.text
    assert "2 User Copy link to turn 2 Bye Assistant No 7 tokens" in page.text
    assert "tone 0.00 as told 1" in page.text
    assert "Be kind." in page.text
    assert {"t1", "t2", "m0", "m0-t2"} <= set(page.having("id"))
    assert "Turns: 1 pass, 2 fail" in page.having("aria-label")


def test_evidence_is_marked_where_it_stands_and_leads_to_its_mark_and_back(empty: Store, url: str) -> None:
    steps = called("refund", '{"order": 7}', '{"state":  "paid"}')
    turns = [turn(0, "Hello", "Hi"), turn(1, "Money!", *steps, "There is No\nrefund, ever. Sorry.")]
    keep(empty, [outcome("kind", turns, {"goal": judged()})])
    page = read(url, "/runs/run-1/samples/kind")
    marks = [found for tag, found in page.tags if tag == "mark"]
    assert list(dict.fromkeys(mark["class"] for mark in marks)) == ["ev met", "ev src", "ev bad"]
    places = {mark["id"] for mark in marks if "id" in mark}
    assert places == {"ev-a", "ev-b", "ev-c"}
    assert {f"#{place}" for place in places} <= set(page.having("href"))
    assert page.having("href").count("#m0") >= 3
    assert "No refund, ever" in page.text
    assert "sorry about that quote not found in the transcript" in page.text
    assert ("details", {"class": "tool", "open": ""}) in page.tags
    assert "judge 0 tokens in, 0 out, $0.25" in page.text


def test_a_failure_is_told_once_with_its_cause(empty: Store, url: str) -> None:
    grades = {
        "a": failed(BROKEN),
        "b": failed(BROKEN, turns=(failed(BROKEN, turn=0),)),
    }
    keep(empty, [outcome("bad", [turn(0, "Hello", failure=BROKEN)], grades, failure=BROKEN)])
    page = read(url, "/runs/run-1/samples/bad")
    assert page.text.count("no answer within 5 s") == 2
    assert "What failed Error Turn 1 no answer within 5 s caused by the target" in page.text
    assert "Error target, timeout" in page.text
    assert page.text.count("not graded: see the error above") == 2


def test_what_failed_stands_at_the_top_with_its_reason_and_a_link(empty: Store, url: str) -> None:
    turns = [turn(i, f"ask {i}", "no refund, ever") for i in range(3)]
    unsaid = Score(value=0.0, reason="Nothing was paid.")
    keep(empty, [outcome("kind", turns, {"goal": judged(), "paid": unsaid, "tone": per_turn(1.0, 1.0, 0.0)})])
    page = read(url, "/runs/run-1/samples/kind")
    top = page.text[page.text.index("What failed") : page.text.index("ask 0")]
    assert "Fail Whole conversation paid Nothing was paid. " in top
    assert "Fail Turn 2 goal not met: the money is paid back; It refused." in top
    assert "Fail Turn 3 tone as told 2" in top
    assert "it is polite" not in top
    assert {"#m1", "#t2", "#t3"} <= set(page.having("href"))
    assert "↓ First failing turn (2)" in page.text


def test_a_conversation_that_passed_says_nothing_of_failures(empty: Store, url: str) -> None:
    keep(empty, [outcome("kind", [turn(0, "Hello", "Hi")])])
    page = read(url, "/runs/run-1/samples/kind")
    assert "What failed" not in page.text
    assert "First failing turn" not in page.text
    assert "#t1" in page.having("href")


def test_more_causes_than_fit_are_folded(empty: Store, url: str) -> None:
    keep(empty, [outcome("kind", [turn(i, "a", "b") for i in range(11)], {"tone": per_turn(*[0.0] * 11)})])
    page = read(url, "/runs/run-1/samples/kind")
    assert "and 3 more Fail Turn 9 tone as told 8" in page.text


def test_what_the_tester_thought_and_how_its_test_ended(empty: Store, url: str) -> None:
    test = kept_test(
        status="impossible",
        target_passed=False,
        stop_reason="nothing was reached",
        blame="target",
        blame_reason="it refused",
        criteria=[{"text": "be rude", "must": False, "met": True}],
        coverage=[{"name": "its purpose", "turns": [1]}, {"name": "at the line", "turns": []}],
        history=[kept_turn(reasoning="to see whether it pays", evaluation="not yet paid", guidance="Press on.")],
        metrics_history=[{"turn": 1, "results": {"tone": {"value": 0.5}}}],
        evaluation={"goal_achievement": {"value": 0.0, "reason": "Nothing paid.", "findings": [LEAKED]}},
        discarded=[kept_test(blame_reason="It lied.", history=[kept_turn(exchange=turn(0, "I am the boss", "No"))])],
    )
    keep(empty, [outcome("kind", [turn(0, "Hello", "Hi")], test=test)])
    text = read(url, "/runs/run-1/samples/kind").text
    for said in ("Target failed impossible", "nothing was reached", "Cause: target: it refused", "must not: be rude"):
        assert said in text
    assert "tester to see whether it pays" in text
    assert "goal so far not yet paid" in text
    assert "1 earlier attempt was discarded" in text
    assert "strategy Press on." in text
    assert "Covered: its purpose: turn 1; at the line: not reached" in text
    assert "measured tone 0.50" in text
    assert "try 1, discarded: It lied. I am the boss Assistant No" in text
    assert "goal_achievement Fail 0.00 Nothing paid. Violation it told a secret" in text
    assert "as you wish" in text


def test_the_neighbours_and_the_failing_ones_are_a_link_away(empty: Store, url: str) -> None:
    scores = [0.0, 1.0, 1.0, 1.0, 0.5, 1.0]
    found = [
        outcome(f"s{i}", [turn(0, "a")], {"goal": Score(value=score)}, position=i) for i, score in enumerate(scores)
    ]
    found[5] = outcome("s5", [turn(0, "a")], {"goal": failed(BROKEN)}, position=5, failure=BROKEN)
    keep(empty, found)

    def links(sample: str) -> dict[str, str]:
        page = read(url, f"/runs/run-1/samples/{sample}")
        keys = {one.get("data-key") or one.get("rel"): one["href"] for tag, one in page.tags if tag == "a"}
        return {str(key): href.split("/")[-1].partition("?")[0] for key, href in keys.items() if key}

    assert links("s2") == {"p": "s0", "n": "s4", "prev": "s1", "next": "s3"}
    assert links("s0") == {"n": "s4", "next": "s1"}
    assert links("s5") == {"p": "s4", "prev": "s4"}


def test_the_neighbours_of_a_filtered_list_are_those_it_shows(empty: Store, url: str) -> None:
    scores = [0.9, 0.1, 0.5, 1.0, 0.3]
    keep(empty, [outcome(f"s{i}", grades={"goal": Score(value=score)}, position=i) for i, score in enumerate(scores)])
    rows = [
        one["href"] for _, one in read(url, "/runs/run-1?filter=goal<0.8&sort=goal").tags if one.get("class") == "row"
    ]
    second = read(url, rows[1])
    keys = {one["data-key"]: one["href"] for tag, one in second.tags if tag == "a" and "data-key" in one}
    assert keys == {"p": rows[0], "n": rows[2]}
    assert "2 of 3" in second.text
    plain = read(url, "/runs/run-1/samples/s1")
    assert "2 of 4 failing" in plain.text
    assert get(f"{url}/runs/run-1/samples/s1?filter=stat:error").status == 422
    assert get(f"{url}/runs/run-1/samples/s1?sort=nobody").status == 404


def test_words_are_found_in_all_parts_of_a_conversation(empty: Store, url: str) -> None:
    turns = [
        turn(i, f"ask {i}", *called("look", '{"city": "Ålesund"}', "x") if i in (3, 150) else "no") for i in range(160)
    ]
    keep(empty, [outcome("a/b", turns, {"tone": per_turn(*[1.0] * 159, 0.0)})])
    page = read(url, "/runs/run-1/samples/a%2Fb?find=%C3%A5lesund&target=bot")
    assert "2 of 160 turns contain these words" in page.text
    assert "Turn 4 Pass look({" in page.text
    assert "4 User found Copy link to turn 4 ask 3" in page.text
    assert [one for one in page.having("href") if "from=151" in one and one.endswith("#t151")] != []
    assert "Outline of 160 turns Turns 1 to 100 100 pass Turn 1 Pass ask 0" in page.text
    assert "Turn 100 Pass ask 99 Turns 101 to 160 1 fail 59 pass" in page.text
    assert ("input", {"type": "hidden", "name": "target", "value": "bot"}) in page.tags
    assert "0 of 160 turns contain" in read(url, "/runs/run-1/samples/a%2Fb?find=nowhere").text
    hostile = get(f"{url}/runs/run-1/samples/a%2Fb?find=%22%3E%3Cscript%3E")
    assert '"><script>' not in hostile.text


def test_a_short_conversation_has_no_outline(empty: Store, url: str) -> None:
    keep(empty, [outcome("short", [turn(0, "Hello", "Hi")])])
    page = read(url, "/runs/run-1/samples/short")
    assert "Outline" not in page.text
    assert "find" not in page.having("id")


def test_trials_of_a_sample_lead_to_each_other(empty: Store, url: str) -> None:
    keep(empty, [outcome("s", [turn(0, f"trial {i}")], trial=i, position=i) for i in range(3)])
    page = read(url, "/runs/run-1/samples/s?trial=2")
    assert "User Copy link to turn 1 trial 1" in page.text
    assert [href for href in page.having("href") if "trial=3" in href] != []


@pytest.mark.parametrize("sample", ["a/b", "..", ".", "?x=1&y#z", "ü%2F", "run", "two\nlines"])
def test_a_sample_may_have_any_name(empty: Store, url: str, sample: str) -> None:
    keep(empty, [outcome(sample, [turn(0, "It is me")])])
    run = read(url, "/runs/run-1")
    link = next(found["href"] for _, found in run.tags if found.get("class") == "row")
    page = read(url, link)
    assert "It is me" in page.text
    data = next(href for href in page.having("href") if href.startswith("/api/"))
    if sample.strip(".") and "\n" not in sample:
        assert get(url + data).json()["attempt"]["key"][0] == sample


def test_a_long_conversation_comes_in_parts_and_links_find_their_turn(empty: Store, url: str) -> None:
    turns = [turn(i, f"question {i}", *called("look", "{}", "x"), f"answer {i}") for i in range(1000)]
    grade = Score(value=0.0, other_evidence=(Evidence(text="c450", kind="call", turn=450, verified=True),))
    keep(empty, [outcome("long", turns, {"goal": grade, "tone": per_turn(*([1.0] * 999), 0.0)})])
    first = get(f"{url}/runs/run-1/samples/long")
    page = Elements(first.text)
    assert len([one for one in page.having("id") if one.startswith("t")]) == 100
    assert "question 99 " in page.text
    assert "Copy link to turn 101 question 100 " not in page.text
    assert "the next 100 turns" in page.text
    assert len(gzip.compress(first.body)) < 150_000
    hrefs = page.having("href")
    assert any("from=1000&" in href and href.endswith("#t1000") for href in hrefs)
    assert any("from=451&" in href and href.endswith("#t451") for href in hrefs)
    third = read(url, "/runs/run-1/samples/long?from=451")
    assert {"t451", "t450", "t500", "p401-ev-a"} <= set(third.having("id"))
    last = read(url, "/runs/run-1/samples/long?from=99999")
    assert {"t1000", "m1-t1000"} <= set(last.having("id"))


def test_what_is_not_there_is_told_on_a_page(empty: Store, url: str) -> None:
    keep(empty, [outcome("kind", [turn(0, "Hello")])])
    for path in (
        "/runs/nobody",
        "/runs/run-1/samples/nobody",
        "/runs/run-1/samples/kind?trial=7",
        "/runs/run-1?grading=g9",
    ):
        answer = get(url + path)
        assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "Not found" in answer.text
    wrong = get(f"{url}/runs/run-1/samples/kind?trial=first")
    assert (wrong.status, "trial" in wrong.text) == (422, True)


def test_text_that_utf8_cannot_hold_breaks_no_page(empty: Store, url: str) -> None:
    keep(empty, [outcome("kind", [turn(0, "half \ud83d a pair", "ok \x00\x1b[31m")])])
    assert "half ? a pair" in read(url, "/runs/run-1/samples/kind").text


def test_the_policy_that_judges_see_is_shown_as_text(empty: Store, url: str) -> None:
    told = outcome("kind", [turn(0, "Hello", "Hi")])
    sample = json.dumps({"id": "kind", "goal": "Say hi", "policy": "No <b>refunds</b>\u202e."})
    keep(empty, [told.model_copy(update={"attempt": told.attempt.model_copy(update={"sample": sample})})])
    page = get(f"{url}/runs/run-1/samples/kind").text
    assert "policy (visible to judges only)" in page
    assert "No &lt;b&gt;refunds&lt;/b&gt;" in page
    assert "\u202e" not in page


def b64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


def packed(url: str, path: str) -> tuple[str, int]:
    """Return a page, and its size as it is sent."""
    body = get(url + path).body
    return body.decode(), len(gzip.compress(body, 5))


def test_a_message_of_fifty_megabytes_is_cut_and_all_of_it_is_a_link_away(empty: Store, url: str) -> None:
    huge = "words that nobody reads " * 2_200_000
    grade = Score(value=0.0, submission=huge)
    keep(
        empty, [outcome("huge", [turn(0, "go", huge, *called("look", json.dumps({"all": huge}), huge))], {"g": grade})]
    )
    text, size = packed(url, "/runs/run-1/samples/huge")
    assert size < 150_000
    assert f"{len(huge) - 50_000:,} more characters" in text
    link = next(one for one in Elements(text).having("href") if one.startswith("/content") and "message=1" in one)
    assert len(get(url + link).body) == len(huge)


def test_ten_thousand_calls_in_one_turn_are_a_bounded_page(empty: Store, url: str) -> None:
    rng = random.Random(1)
    calls = [one for i in range(10_000) for one in called("look", json.dumps({"id": i}), rng.randbytes(60).hex())]
    keep(empty, [outcome("many", [turn(0, "go", *calls, "done")])])
    text, size = packed(url, "/runs/run-1/samples/many")
    assert size < 150_000
    assert "more messages and calls in this turn" in text


def test_a_page_of_long_turns_has_fewer_of_them_in_full_and_all_are_reached(empty: Store, url: str) -> None:
    rng = random.Random(2)
    said = [rng.randbytes(9_000).hex() for _ in range(100)]
    long = [turn(i, f"question {i}", b64(text), *called("look", "{}", f"found {i}")) for i, text in enumerate(said)]
    keep(empty, [outcome("long", long)])
    seen: list[str] = []
    address = "/runs/run-1/samples/long"
    while address:
        text, size = packed(url, address)
        assert size < 150_000
        page = Elements(text)
        seen += [one for one in page.having("id") if re.fullmatch(r"t\d+", one)]
        assert sum(b64(one) in page.text for one in said) == len(re.findall(r'<article class="turn', text))
        following = re.search(r'href="([^"]+)" data-next-part', text)
        address = html.unescape(following[1]) if following else ""
    assert seen == [f"t{number}" for number in range(1, 101)]
    assert {"t60", "t59"} <= set(Elements(packed(url, "/runs/run-1/samples/long?from=60")[0]).having("id"))


def test_what_was_retrieved_stands_before_the_answer_with_its_evidence(empty: Store, url: str) -> None:
    answer = AIMessage(
        content="It takes 3 days.", retrieval_context=["Parcels take 5 days.", {"id": "d2", "text": "<b>Refunds</b>"}]
    )
    quiet = AIMessage(content="Yes.", retrieval_context=["Nothing that is cited. " * 2_000])
    grade = Score(value=0.0, other_evidence=(Evidence(text="Parcels take 5 days", turn=0, verified=True),))
    keep(empty, [outcome("asked", [turn(0, "When?", answer), turn(1, "Sure?", quiet)], {"grounded": grade})])
    text = get(f"{url}/runs/run-1/samples/asked").text
    page = Elements(text)
    folds = [found for tag, found in page.tags if tag == "details" and "retrieved" in found.get("class", "")]
    assert ["open" in fold for fold in folds] == [True, False]
    assert page.text.index("Parcels take 5 days") < page.text.index("It takes 3 days.")
    assert "&lt;b&gt;Refunds" in text
    assert [found["class"] for tag, found in page.tags if tag == "mark"] == ["ev src"]
    link = next(one for one in page.having("href") if one.startswith("/content") and "context=0" in one)
    assert get(url + link).text == "Nothing that is cited. " * 2_000
    assert get(f"{url}{link.replace('context=0', 'context=1')}").status == 404


def test_changes_of_the_state_are_a_table(empty: Store, url: str) -> None:
    held = outcome("paid", [turn(0, "Pay")], state={"order": {"status": "<i>lost</i>", "price": 40}})
    row = {
        "id": "paid",
        "state": {"order": {"status": "sent", "price": 40}},
        "expect": {"state": {"order.status": "x"}},
    }
    attempt = held.attempt.model_copy(update={"sample": json.dumps(row)})
    keep(empty, [held.model_copy(update={"attempt": attempt})])
    text = get(f"{url}/runs/run-1/samples/paid").text
    assert 'Path Before After Expected order.status "sent" "<i>lost</i>" Fail "x"' in Elements(text).text
    assert "<i>lost" not in text
    keep(empty, [outcome("kept", [turn(0, "Hello")])], "run-2")
    assert "What changed in the state" not in get(f"{url}/runs/run-2/samples/kept").text


def test_several_agents_are_named_and_their_handoffs_stand_between_them(empty: Store, url: str) -> None:
    _, turns = split_turns(read_messages(REFUND))
    keep(empty, [outcome("team", [Turn(index=at, messages=turn) for at, turn in enumerate(turns)])])
    page = read(url, "/runs/run-1/samples/team")
    assert page.text.count("handoff") == 3
    for words in ("handoff triage → to refunds refunds transfer_to_triage", "triage I hand you over. handoff triage"):
        assert words in page.text


def test_the_name_of_an_agent_is_no_markup(empty: Store, url: str) -> None:
    rows = [user("hi"), by("<b>a</b>", says("x"), handoff_to="<i>b</i>"), by("<i>b</i>", calls(("1", "f", {})))]
    keep(empty, [outcome("team", [Turn(index=0, messages=read_messages(rows))])])
    text = get(f"{url}/runs/run-1/samples/team").text
    assert "<b>a</b>" not in text
    assert "<i>b</i>" not in text
    assert text.count("&lt;i&gt;b&lt;/i&gt;") >= 2


GRADES = [
    Score(value=0.0),
    Score(value=0.8, passed=True),
    Score(value=1.0),
    Score(state="skipped", reason="nothing to say"),
    Score(value=1.0, passed=False),
    Score(value=0.5),
]
"""By position: fail, pass from 0.7 on, pass, skipped, a full score that does not pass, fail."""


@pytest.mark.parametrize(
    ("position", "around"),
    [
        (0, (None, "1", None, "4")),
        (2, ("1", "3", "0", "4")),
        (4, ("3", "5", "0", "5")),
        (5, ("4", None, "4", None)),
    ],
)
def test_failing_neighbours_are_those_that_the_list_says_failed(
    tmp_path: Path, position: int, around: tuple[str | None, ...]
) -> None:
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome(str(i), grades={"goal": grade}, position=i) for i, grade in enumerate(GRADES)])
        found = neighbours(store, "run-1-g1", position)
    assert tuple(map(_name, (found.before, found.after, found.listed.before, found.listed.after))) == around


@pytest.mark.parametrize(
    ("sort", "position", "around"),
    [
        ("goal", 0, (None, "5", 1, 4)),
        ("goal", 5, ("0", "2", 2, 4)),
        ("-goal", 0, ("5", None, 4, 4)),
        ("-position", 2, ("4", "0", 3, 4)),
        ("goal", 3, ("4", None, None, 4)),
    ],
)
def test_neighbours_of_a_list_follow_its_filter_and_its_order(
    tmp_path: Path, sort: str, position: int, around: tuple[str | int | None, ...]
) -> None:
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome(str(i), grades={"goal": grade}, position=i) for i, grade in enumerate(GRADES)])
        wanted = parse_filter("-sample:1 -state:skipped")
        found = neighbours(store, "run-1-g1", position, wanted, sort).listed
    assert (_name(found.before), _name(found.after), found.number, found.total) == around


def _name(sample: SampleEntry | None) -> str | None:
    return None if sample is None else sample.sample_id
