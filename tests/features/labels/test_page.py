from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from server.live import Reply, get, send, serving
from server.pages.cases import Elements, keep, outcome, per_turn, turn
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import Score
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.labels import LabelPlace as Place
from vivavoce.store.labels import now_label
from vivavoce.store.store import Store

ME = whoever_sits_here().name
RUN = "the-run-nobody-may-know"
TARGET = "the-bot-nobody-may-know"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with four conversations; the judge is in doubt about the third."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        scores = (1.0, 0.0, 0.9, 1.0)
        talks = [
            outcome(
                f"sample-{number}",
                [turn(0, f"Question {number}", f"Answer {number}")],
                {"goal": Score(value=score, reason=f"because-{number}"), "apart": per_turn(score)},
                position=number,
                target=TARGET,
            )
            for number, score in enumerate(scores)
        ]
        keep(store, talks, RUN)
        yield store


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    with serving(store) as base:
        yield base


def begin(url: str, **options: object) -> str:
    """Begin a queue, and return the address of its first item."""
    answer = get(f"{url}/label?{urlencode({'run': RUN, 'grader': 'goal', **options})}")
    assert answer.status == 303, answer.text
    return url + answer.headers["location"]


def key_of(page: Reply) -> str:
    match = re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)
    assert match is not None
    return match[1]


def post(there: str, **fields: str) -> Reply:
    """Send the form of a page."""
    page = get(there if "/label/" in there else there.rsplit("/", 1)[0] + f"/runs/{RUN}/samples/sample-0")
    body = urlencode({"form_key": key_of(page), **fields}).encode()
    return send("POST", there, body, {"content-type": "application/x-www-form-urlencoded"})


def test_what_the_judge_is_least_sure_of_comes_first(url: str) -> None:
    page = get(begin(url))
    assert "Question 2" in page.text
    assert "because-2" in page.text
    assert "Item 1 of 4" in Elements(page.text).text


def test_what_another_person_sees_differently_comes_before_that(store: Store, url: str) -> None:
    key = next(attempt.key for attempt in store.attempts(RUN, sample_id="sample-3"))
    store.labels.set(RUN, now_label(Place(RUN, key, None, "goal", "Olu"), "fail"))
    assert "Question 3" in get(begin(url)).text


def test_a_blind_page_has_nothing_of_the_run_the_target_or_the_judge(url: str) -> None:
    there = begin(url, blind=1)
    page = get(there)
    assert "Answer" in page.text
    for hidden in (RUN, TARGET, "because-", "sample-", "0.9", "1.00"):
        assert hidden not in page.text + there.removeprefix(url), hidden


def test_a_saved_mark_shows_what_the_judge_says_and_the_log_has_it(store: Store, url: str) -> None:
    there = begin(url, blind=1)
    saved = post(there, action="save", verdict="fail", note="never answered")
    assert saved.status == 303
    (label,) = store.labels.all(RUN)
    assert (label.verdict, label.note, label.author, label.blind) == ("fail", "never answered", ME, True)
    following = get(url + saved.headers["location"])
    text = Elements(following.text).text
    assert "1 labelled, 3 to go" in text
    assert "Item 1 : you say Fail Undo" in text
    assert re.search(r"You say Fail \(blind\); the judge says \w+, \d\.\d\d", Elements(get(there).text).text)
    assert "because-" not in following.text
    assert "because-" in get(there).text
    assert [entry.action for entry in store.audit.entries().entries] == ["label.set"]


def test_a_mark_is_undone_and_the_item_comes_again(store: Store, url: str) -> None:
    there = begin(url)
    post(there, action="save", verdict="pass")
    undone = post(there, action="undo")
    assert url + undone.headers["location"] == there
    assert list(store.labels.all(RUN)) == []
    assert [entry.action for entry in store.audit.entries().entries] == ["label.remove", "label.set"]


def test_what_is_skipped_comes_again_at_the_end_and_the_end_says_so(url: str) -> None:
    there = begin(url)
    queue = there.rsplit("/", 1)[0]
    assert f'href="{queue.removeprefix(url)}/2"' in get(there).text
    places = [2, 3, 4]
    ends = [post(f"{queue}/{place}", action="save", verdict="pass").headers["location"] for place in places]
    assert [end.rsplit("/", 1)[1] for end in ends] == ["3", "4", "1"]
    last = post(there, action="save", verdict="unsure")
    page = Elements(get(url + last.headers["location"]).text).text
    assert "All 4 labelled" in page
    assert "1 labelled “Cannot tell” is not counted" in page
    assert "Raw agreement" in page


def test_a_new_queue_goes_on_where_the_last_one_was(url: str) -> None:
    post(begin(url), action="save", verdict="pass")
    there = begin(url)
    assert there.endswith("/2")
    assert "1 labelled, 3 to go" in Elements(get(there).text).text


def test_the_same_seed_gives_the_same_order(url: str) -> None:
    def first(seed: int) -> list[str]:
        queue = begin(url, blind=1, seed=seed).rsplit("/", 1)[0]
        pages = [get(f"{queue}/{place}").text for place in (1, 2, 3, 4)]
        return [question for page in pages for question in re.findall(r"Question \d", page)]

    assert first(3) == first(3)
    assert len({tuple(first(seed)) for seed in range(6)}) > 1


def test_a_mark_that_is_none_is_told(store: Store, url: str) -> None:
    there = begin(url)
    assert "choose an answer" in post(there, action="save").text
    assert "choose an answer" in post(there, action="save", verdict="pass", note="x" * 4001).text
    assert list(store.labels.all(RUN)) == []


def test_a_form_from_elsewhere_labels_nothing(store: Store, url: str) -> None:
    body = urlencode({"form_key": "0", "action": "save", "verdict": "pass"}).encode()
    assert send("POST", begin(url), body, {"content-type": "application/x-www-form-urlencoded"}).status == 403
    assert list(store.labels.all(RUN)) == []


@pytest.mark.parametrize(
    "path", ["/label/none/1", "/label/none/end", "/label?run=none", "/label?run=latest&grader=none"]
)
def test_what_is_not_there_is_told_on_a_page(url: str, path: str) -> None:
    answer = get(url + path)
    assert answer.status == 404
    assert "Not found" in answer.text


def test_runs_and_their_graders_are_offered(url: str) -> None:
    post(begin(url), action="save", verdict="pass")
    page = get(f"{url}/label")
    assert {f"/label?run={RUN}&grader=goal", f"/label?run={RUN}&grader=goal&blind=1&seed=1"} <= set(
        Elements(page.text).having("href")
    )
    assert re.search(r"goal 1 uncertain first", Elements(page.text).text)
    assert get(f"{url}/label?run=latest").status == 200


def test_without_a_grader_people_say_whether_it_went_well(store: Store, url: str) -> None:
    there = begin(url, grader="")
    assert "Did the assistant do well?" in get(there).text
    post(there, action="save", verdict="pass")
    assert [label.grader for label in store.labels.all(RUN)] == [""]


def test_the_page_of_a_conversation_shows_marks_beside_those_of_the_judge(store: Store, url: str) -> None:
    fields = {"run": RUN, "sample": "sample-1", "target": TARGET, "trial": "1", "action": "save"}
    post(f"{url}/label", **fields, grader="goal", verdict="pass", note="<b>fine</b>")
    sent = post(f"{url}/label", **fields, grader="apart", turn="1", verdict="fail")
    assert sent.headers["location"].startswith(f"/runs/{RUN}/samples/sample-1?")
    assert sent.headers["location"].endswith("#t1")
    page = get(url + sent.headers["location"].partition("#")[0])
    text = Elements(page.text).text
    assert "the judge says Fail, 0.00: too strict" in text
    assert "the judge says Fail, 0.00: they agree" in text
    assert "<b>fine</b>" not in page.text
    post(f"{url}/label", **{**fields, "action": "undo"}, grader="goal")
    assert [label.grader for label in store.labels.all(RUN)] == ["apart"]


def test_whoever_labels_sees_the_policy_that_judges_see(url: str, store: Store) -> None:
    talk = outcome("ruled", [turn(0, "Hi", "Hello")], target=TARGET)
    sample = json.dumps({"id": "ruled", "goal": "Say hi", "policy": "No <b>refunds</b>."})
    ruled = talk.model_copy(update={"attempt": talk.attempt.model_copy(update={"sample": sample})})
    keep(store, [ruled], "another-run")
    address = get(f"{url}/label?{urlencode({'run': 'another-run', 'grader': 'goal'})}").headers["location"]
    assert "No &lt;b&gt;refunds&lt;/b&gt;." in get(url + address).text
    assert "policy of the assistant" not in get(begin(url)).text


def test_a_blind_queue_never_shows_the_score_of_the_item_before(url: str) -> None:
    address = post(begin(url, blind=1), action="save", verdict="pass").headers["location"]
    text = Elements(get(url + address).text).text
    assert "you say Pass" in text
    assert "the judge says" not in text
    beside = post(begin(url), action="save", verdict="fail").headers["location"]
    assert "you say Fail ; the judge says" in Elements(get(url + beside).text).text.replace("Fail;", "Fail ;")


def test_the_question_comes_with_its_definition(store: Store, url: str) -> None:
    graders = {"goal": {"kind": "metric", "metric": "goal_achievement", "config": {"categories": ["<i>no"]}}}
    talk = outcome("one", [turn(0, "Hi", "Hello")], {"goal": Score(value=1.0)})
    keep(store, [talk], "defined", spec={"graders": graders})
    address = get(f"{url}/label?{urlencode({'run': 'defined', 'grader': 'goal'})}").headers["location"]
    page = get(url + address)
    assert "Judges whether a conversation reached its goal" in page.text
    assert "&lt;i&gt;no" in page.text
    assert "judged by a model" in get(f"{url}/label?run=defined").text
    critic = {"kind": "metric", "metric": "aspect_critic", "config": {"definition": "It <b>answers."}}
    keep(store, [talk], "aspect", spec={"graders": {"goal": critic}})
    address = get(f"{url}/label?{urlencode({'run': 'aspect', 'grader': 'goal'})}").headers["location"]
    assert '<p class="asked">It &lt;b&gt;answers.</p>' in get(url + address).text
    assert "judged by a model" not in get(f"{url}/label?run={RUN}").text


def test_the_end_of_a_queue_says_how_far_people_agree(store: Store, url: str) -> None:
    there = begin(url)
    queue = there.rsplit("/", 1)[0]
    for place in range(1, 5):
        assert "Agreement between people" not in get(f"{queue}/{place}").text
        post(f"{queue}/{place}", action="save", verdict="pass")
    assert "Agreement between people" not in get(f"{queue}/end").text
    key = AttemptKey("sample-1", TARGET, 0)
    store.labels.set(RUN, now_label(Place(RUN, key, None, "goal", "<b>Bo"), "fail"))
    page = get(f"{queue}/end")
    text = Elements(page.text).text
    assert "2 people: 0 of 1 with the same label" in text
    assert "people differ sample-1 <b>Bo says fail" in re.sub(r"\s+", " ", text)
    assert "<b>Bo" not in page.text
