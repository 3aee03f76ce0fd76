from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

import pytest
from rich.console import Console

from server.live import get
from server.pages.cases import BROKEN, Elements, everywhere, keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.features.compare.page import PAGE_SIZE
from vivavoce.features.compare.terminal import comparison
from vivavoce.records.run import Grading, Outcome
from vivavoce.records.score import Score, failed
from vivavoce.report.comparison.pairing import compare
from vivavoce.safe_text import safe
from vivavoce.store.store import Store


def make_outcomes(scores: Sequence[float | Score], prefix: str = "s", target: str = "bot") -> list[Outcome]:
    grades = [score if isinstance(score, Score) else Score(value=score, reason="said so") for score in scores]
    return [
        outcome(f"{prefix}-{i}", [turn(0, "hi", f"answer {i}")], {"goal": grade}, position=i, target=target)
        for i, grade in enumerate(grades)
    ]


def two(store: Store, a: Sequence[Outcome], b: Sequence[Outcome]) -> None:
    keep(store, a, "run-a", at=1000)
    keep(store, b, "run-b", at=2000)


def page(url: str, path: str = "/compare?a=run-a&b=run-b") -> Elements:
    answer = get(url + path)
    assert answer.status == 200, answer.text
    return Elements(answer.text)


def rows(read: Elements) -> list[str]:
    return [attributes["href"] for _, attributes in read.tags if attributes.get("class", "").startswith("row")]


def test_the_finding_comes_first_as_a_sentence(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0] * 40), make_outcomes([0.5] * 20 + [1.0] * 20))
    read = page(url)
    assert "On the 40 samples that both runs scored, B is worse on goal by 0.250 (95% interval" in read.text
    assert "20 went from pass to fail and 0 the other way" in read.text
    assert "Matched samples only: the 40 that are identical in both runs" in read.text
    assert "Worse" in read.text
    assert any(label.startswith("Difference −0.250, 95% interval") for label in read.having("aria-label"))


def test_every_reader_says_how_large_a_change_would_have_shown(empty: Store, url: str) -> None:
    two(empty, make_outcomes([0.9, 0.4] * 20), make_outcomes([0.8, 0.6] * 10 + [1.0, 0.3] * 10))
    empty_comparison = compare(empty, empty.grading("run-a"), empty.grading("run-b"))
    (goal,) = empty_comparison.targets[0].graders
    assert goal.reading == "same"
    assert goal.detectable is not None
    assert goal.graded
    by = f"A change of goal by {goal.detectable:.2g}"
    sentence = f"{by} would be detected in at least 80% of such comparisons; smaller changes may be detected, too."
    assert sentence in page(url).text
    assert f"`{sentence}`" in markdown_comparison(empty_comparison)
    terminal = io.StringIO()
    Console(file=terminal, width=200).print(comparison(empty_comparison))
    assert sentence in terminal.getvalue()
    answer = json.loads(get(f"{url}/api/v1/comparisons?a=run-a&b=run-b").text)
    assert answer["targets"][0]["graders"][0]["detectable"] == goal.detectable
    assert "would have shown" not in page(url, "/compare?a=run-a&b=run-a").text


def test_an_interval_that_touches_zero_has_no_colour(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0, 0.5, 1.0, 1.0]), make_outcomes([1.0, 1.0, 0.5, 1.0]))
    read = page(url)
    assert "No clear change" in read.text
    assert not [
        attributes for tag, attributes in read.tags if tag == "svg" and "bad" in attributes.get("class", "").split()
    ]


def test_flips_lead_to_both_conversations_and_say_why(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0, 0.0, 1.0]), make_outcomes([0.25, 1.0, 1.0]))
    read = page(url)
    links = [link for link in rows(read) if link.startswith("/compare/samples")]
    assert ["sample_a=s-0" in links[0], "sample_a=s-1" in links[1], len(links)] == [True, True, 2]
    assert "1.00 → 0.25" in read.text
    assert "goal: said so" in read.text
    assert "Pass to fail, 1" in read.text
    assert "Fail to pass, 1" in read.text


def test_a_long_list_is_shown_a_part_at_a_time(empty: Store, url: str) -> None:
    number = 2 * PAGE_SIZE + 7
    two(empty, make_outcomes([1.0] * number), make_outcomes([0.0] * number))
    answer = get(f"{url}/compare?a=run-a&b=run-b")
    assert len(gzip.compress(answer.body)) < 150_000
    whole = Elements(answer.text)
    assert len([link for link in rows(whole) if link.startswith("/compare/samples")]) == PAGE_SIZE
    assert f"All {number}" in whole.text
    seen: list[str] = []
    path: str | None = "/compare?a=run-a&b=run-b&only=worsened"
    while path:
        part = page(url, path)
        seen += rows(part)
        path = next((attributes["href"] for _, attributes in part.tags if attributes.get("rel") == "next"), None)
    assert len(set(seen)) == len(seen) == number


def test_what_broke_and_what_has_no_partner_is_listed_apart(empty: Store, url: str) -> None:
    a = [*make_outcomes([1.0, failed(BROKEN)]), *make_outcomes([1.0], "old")]
    two(empty, a, [*make_outcomes([failed(BROKEN), 1.0]), *make_outcomes([1.0], "new")])
    read = page(url)
    assert "New errors in B, 1" in read.text
    assert "Fixed in B, 1" in read.text
    assert "Unmatched, 2" in read.text
    assert {link.partition("?")[0] for link in rows(read)} >= {"/runs/run-a/samples/old-0", "/runs/run-b/samples/new-0"}
    assert [link.partition("?")[0] for link in rows(page(url, "/compare?a=run-a&b=run-b&only=unmatched_b"))] == [
        "/runs/run-b/samples/new-0"
    ]


def test_other_rules_are_told_with_a_way_to_grade_again(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0, 1.0]), make_outcomes([1.0, 1.0]))
    read = page(url)
    assert "it is unknown whether the grader was the same on both sides" in read.text
    assert {"/jobs/new?grade=run-a", "/jobs/new?grade=run-b"} <= set(read.having("href"))
    assert "viva runs grade run-a --suite FILE" in read.text


def test_the_same_rules_need_no_warning(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0, 1.0]), make_outcomes([1.0, 0.0]))
    for name in ("run-a", "run-b"):
        known = empty.grading(name)
        empty.update_grading(known.model_copy(update={"fingerprints": {"goal": "f"}}))
    read = page(url)
    assert "so the scores are comparable" in read.text
    assert "Grade A again" not in read.text


def test_a_set_of_scores_can_be_named(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0]), make_outcomes([0.0]))
    empty.add_grading(Grading(id="other", run_id="run-b", spec={}, created_at=3000, finished_at=3001))
    read = page(url, "/compare?a=run-a&b=run-b&grading_b=run-b-g1")
    assert "scores run-b-g1" in read.text
    assert any("grading_b=run-b-g1" in link for link in rows(read))


def test_a_run_against_itself_says_that_nothing_can_differ(empty: Store, url: str) -> None:
    keep(empty, make_outcomes([1.0]), "run-a")
    assert "there is no difference" in page(url, "/compare?a=run-a&b=run-a").text


def test_targets_are_compared_one_pair_at_a_time(empty: Store, url: str) -> None:
    a = [*make_outcomes([1.0], target="v1"), *make_outcomes([1.0], target="v2")]
    two(empty, a, [*make_outcomes([0.0], target="v1"), *make_outcomes([1.0], target="v2")])
    read = page(url)
    assert "Pass to fail, 1" in read.text
    other = next(link for link in read.having("href") if "target_a=v2" in link and link.startswith("/compare?"))
    assert "Pass to fail, 0" in page(url, other).text


def test_runs_without_a_shared_target_ask_for_two(empty: Store, url: str) -> None:
    a = [*make_outcomes([1.0], target="v1"), *make_outcomes([1.0], target="v2")]
    two(empty, a, [*make_outcomes([1.0], target="v3"), *make_outcomes([1.0], target="v4")])
    answer = get(f"{url}/compare?a=run-a&b=run-b")
    assert answer.status == 422
    assert {"target_a", "target_b"} <= set(Elements(answer.text).having("name"))
    assert "have no common target" in answer.text
    assert "1 sample" in page(url, "/compare?a=run-a&b=run-b&target_a=v1&target_b=v3").text


def test_without_two_runs_there_is_a_form_and_the_newest_pair(empty: Store, url: str) -> None:
    assert "No suite has two runs yet" in page(url, "/compare").text
    two(empty, make_outcomes([1.0]), make_outcomes([1.0]))
    read = page(url, "/compare?b=run-b")
    assert rows(read) == ["/compare?a=run-a&b=run-b"]
    assert "run-b" in read.having("value")


def test_an_unknown_run_is_told_beside_the_form(url: str) -> None:
    answer = get(f"{url}/compare?a=nobody&b=latest")
    assert answer.status == 404
    assert "These cannot be compared" in answer.text


def test_a_run_offers_the_comparison_with_the_one_before(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0]), make_outcomes([1.0]))
    assert "/compare?a=run-a&b=run-b" in page(url, "/runs/run-b").having("href")
    assert "Compare with the previous run" not in page(url, "/runs/run-a").text


def talks(*marks: Sequence[float]) -> list[list[Outcome]]:
    """Return the same conversation once for each of some marks of its turns."""
    return [
        [outcome("s", [turn(i, f"ask {i}", f"say {i}") for i in range(len(mark))], {"g": per_turn(*mark)})]
        for mark in marks
    ]


def test_two_conversations_stand_side_by_side_and_part_where_their_marks_do(empty: Store, url: str) -> None:
    two(empty, *talks((1.0, 1.0, 1.0), (1.0, 0.0, 0.0)))
    read = page(url, "/compare/samples?a=run-a&b=run-b&sample_a=s")
    assert "First difference: turn 2" in read.text
    assert read.text.count("First diverging turn") == 1
    assert read.text.count("say 0") == 1, "the same words are shown once"
    assert "Fail g 0.00: as told 1" in read.text
    ids = read.having("id")
    assert len(ids) == len(set(ids))


def test_a_long_conversation_is_shown_in_parts(empty: Store, url: str) -> None:
    two(empty, *talks([1.0] * 230, [1.0] * 229 + [0.0]))
    path = "/compare/samples?a=run-a&b=run-b&sample_a=s"
    first, second = page(url, path), page(url, f"{path}&from=201")
    assert len([tag for tag, _ in first.tags if tag == "article"]) == 200
    assert len([tag for tag, _ in second.tags if tag == "article"]) == 30
    assert any(link.endswith("from=230#t230") for link in first.having("href"))


def test_from_one_flip_the_next_is_a_key_away(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0, 1.0, 1.0]), make_outcomes([0.0, 0.0, 1.0]))
    first = rows(page(url, "/compare?a=run-a&b=run-b&only=worsened"))[0]
    read = page(url, first)
    assert "flip 1 of 2" in read.text
    following = next(attributes["href"] for _, attributes in read.tags if attributes.get("data-key") == "n")
    assert "flip 2 of 2" in page(url, following).text


def test_of_several_trials_the_one_that_differs_most_is_shown(empty: Store, url: str) -> None:
    a = [outcome("s", [turn(0, "hi", f"trial {i}")], {"g": Score(value=1.0)}, trial=i) for i in range(3)]
    b = [outcome("s", [turn(0, "hi", f"after {i}")], {"g": Score(value=s)}, trial=i) for i, s in enumerate((1, 0, 1))]
    two(empty, a, b)
    path = "/compare/samples?a=run-a&b=run-b&sample_a=s"
    assert "after 1" in page(url, path).text
    assert "after 2" in page(url, f"{path}&trial=3").text
    assert get(f"{url}{path}&trial=7").status == 404
    assert get(f"{url}{path}&sample_b=nobody").status == 404


@pytest.mark.parametrize("text", TEXTS[::4])
def test_what_strangers_wrote_stays_a_text(empty: Store, url: str, text: str) -> None:
    spec = {"description": text, "gate": {"metric_key": text, "value": 0.5}}
    better = everywhere(text)
    grades = {**better.scores, text: Score(value=1.0)}
    keep(empty, [better.model_copy(update={"scores": grades})], "run-a", at=1, suite=text, spec=spec)
    keep(empty, [everywhere(text)], "run-b", at=2, suite=text, spec=spec)
    sample = quote(text, safe="")
    pages = [
        "/compare",
        "/compare?a=run-a&b=run-b",
        f"/compare?a=run-a&b=run-b&only=worsened&grader={sample}",
        f"/compare?a={sample}&b={sample}&target_a={sample}",
        f"/compare/samples?a=run-a&b=run-b&sample_a={sample}&grader={sample}&only=worsened",
    ]
    plain_text = " ".join(safe(text).split())
    for path in pages:
        answer = get(url + path)
        assert answer.status in (200, 404), path
        read = Elements(answer.text)
        scripts = [attributes["src"] for tag, attributes in read.tags if tag == "script"]
        assert sorted(set(scripts) - {"/static/content.js"}) == [
            "/static/palette.js",
            "/static/print.js",
            "/static/vv.js",
        ]
        assert {tag for tag, _ in read.tags}.isdisjoint({"img", "iframe", "object", "embed", "base", "math", "style"})
        for _, attributes in read.tags:
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
        links = [link for name in ("href", "src", "action") for link in read.having(name)]
        assert all(link.startswith(("/", "#")) and link[:2] != "//" for link in links)
        if escape(plain_text) != plain_text and "&" not in plain_text:
            assert plain_text not in answer.text


def test_several_runs_are_compared_with_the_first(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0] * 9), make_outcomes([0.0] * 9))
    keep(empty, make_outcomes([1.0] * 9), "run-c", at=3000)
    read = page(url, "/compare?a=run-a&b=run-b+run-c")
    assert "B is worse than A on goal. C shows no clear change from A." in read.text
    assert "9 worse, 0 better" in read.text
    assert any("97.5% interval" in label for label in read.having("aria-label"))
    assert "/compare?a=run-a&b=run-b&grader=goal" in rows(read)
    twice = get(f"{url}/compare?a=run-a&b=run-b+run-b")
    assert twice.status == 422
    assert "named twice" in twice.text
    assert get(f"{url}/compare?a=run-a&b=run-b+nothing").status == 404


def test_the_suites_are_compared_line_by_line(empty: Store, url: str) -> None:
    two(empty, make_outcomes([1.0]), make_outcomes([0.0]))
    assert "/compare/suites?a=run-a&b=run-b" in page(url).having("href")
    assert "The suites are the same" in page(url, "/compare/suites?a=run-a&b=run-b").text


def test_side_by_side_shows_the_words_that_differ(empty: Store, url: str) -> None:
    words = "Your refund of {} euros is on its way to your card."
    for name, amount, score in (("run-a", 10, 1.0), ("run-b", 20, 0.0)):
        talk = [turn(0, "Where is it?", words.format(amount)), turn(1, "Thanks", "Bye" if amount == 10 else "So long")]
        keep(empty, [outcome("s", talk, {"goal": Score(value=score)})], name, at=amount)
    answer = get(f"{url}/compare/samples?a=run-a&b=run-b&sample_a=s").text
    assert answer.count("Word by word") == 1
    assert "refund of <del>10</del><ins>20</ins> euros" in answer
