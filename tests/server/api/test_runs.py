from __future__ import annotations

import pytest

from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.server.replies import CountedSamples, RunReport
from vivavoce.store.browse.listing import RunPage, ScorePage, TurnPage
from vivavoce.store.store import Store

from ..live import get, serving
from ..pages.cases import keep, outcome, per_turn, turn

GRADES = {"goal": Score(value=1.0), "each": per_turn(0.25, 0.75)}


def test_runs_are_listed_with_the_figures_of_their_summary(server: str, store: Store) -> None:
    page = RunPage.model_validate_json(get(f"{server}/api/v1/runs").body)
    summary = store.gradings(page.runs[0].id)[0].summary
    headline = page.runs[0].headline
    assert summary is not None
    assert headline is not None
    assert (headline.mean, headline.n, headline.errors) == (summary["graders"][0]["mean"], 2, 1)
    assert page.next is None


def test_a_run_is_found_by_any_of_its_names(server: str, store: Store) -> None:
    run = store.run("latest")
    for name in (run.id, "latest", run.id.rpartition("-")[2]):
        report = RunReport.model_validate_json(get(f"{server}/api/v1/runs/{name}").body)
        assert (report.run, report.grading.run_id, report.summary.attempts) == (run, run.id, 3)
    assert len(get(f"{server}/api/v1/runs/latest/gradings").json()) == 1


def test_samples_are_filtered_and_come_in_pages(server: str) -> None:
    url = f"{server}/api/v1/runs/latest/samples"
    first = CountedSamples.model_validate_json(get(f"{url}?limit=2&sort=worst").body)
    assert ([sample.sample_id for sample in first.samples], first.matches) == (["broken", "a/b"], 3)
    rest = CountedSamples.model_validate_json(get(f"{url}?limit=2&sort=worst&after={first.next}").body)
    assert ([sample.sample_id for sample in rest.samples], rest.next, rest.matches) == (["kind"], None, None)
    found = CountedSamples.model_validate_json(get(f"{url}?filter=tag:short%20said%3E0.5").body)
    assert [sample.sample_id for sample in found.samples] == ["kind"]
    broken = CountedSamples.model_validate_json(get(f"{server}/api/v1/runs/latest/errors").body)
    assert [sample.failure and sample.failure.blame for sample in broken.samples] == ["target"]


def test_a_conversation_comes_as_the_store_has_it(server: str, store: Store) -> None:
    grading = store.grading(store.run("latest").id)
    for sample in ("kind", "a/b", "a%2Fb"):
        outcome = Outcome.model_validate_json(get(f"{server}/api/v1/runs/latest/samples/{sample}/0").body)
        assert [outcome] == list(store.outcomes(grading.id, sample_id=sample.replace("%2F", "/")))


def test_a_run_compared_with_itself_has_no_flips(server: str) -> None:
    comparison = Comparison.model_validate_json(get(f"{server}/api/v1/comparisons?a=latest&b=latest").body)
    assert [(grader.n, grader.difference, grader.worsened) for grader in comparison.targets[0].graders] == [
        (2, 0.0, [])
    ]


@pytest.mark.parametrize(
    "path",
    [
        "runs/nothing",
        "runs/%00",
        "runs/%ED%A0%80",
        "runs/latest~9",
        "runs/nothing/samples",
        "runs/latest/samples?grading=x",
        "runs/latest/samples/kind/1",
        "runs/latest/samples/none/0",
        "runs/latest/samples/%00/0",
        "runs/latest/samples/kind/0?target=x",
        "runs?after=nonsense",
        "runs/latest/samples?after=WzEsMiwzXQ%00",
        "runs/latest/scores?after=WzFd",
        "runs/latest/samples/kind/0/turns?after=WyIxIl0",
        "comparisons?a=latest&b=nothing",
        "runs/nothing/scores",
        "runs/latest/samples/kind/1/turns",
        "jobs/nothing",
        "jobs/nothing/events",
        "nothing",
    ],
)
def test_what_is_not_there_is_not_found(server: str, path: str) -> None:
    reply = get(f"{server}/api/v1/{path}")
    assert (reply.status, list(reply.json())[:2]) == (404, ["detail", "code"])


@pytest.mark.parametrize(
    "path",
    [
        "runs?limit=0",
        "runs?limit=99999999999999999999999",
        "runs?status=gone",
        "runs/latest/samples?filter=nofield:x",
        "runs/latest/samples?filter=goal%3C%00",
        "runs/latest/samples?filter=text:%22%E2%80%A6%22",
        "runs/latest/samples/kind/99999999999999999999",
        "runs/latest/samples/kind/-1",
        "comparisons?a=latest",
        "comparisons?a=latest&b=latest&threshold=0.5",
        "runs?%00=1",
        "runs/latest/scores?state=x",
    ],
)
def test_what_is_wrong_is_told(server: str, path: str) -> None:
    reply = get(f"{server}/api/v1/{path}")
    assert (reply.status, list(reply.json())[:2]) == (422, ["detail", "code"])


@pytest.mark.parametrize(
    "wanted",
    [
        "%00",
        "text:%00x",
        "tag:%00",
        "target:%ED%A0%80",
        "sample:%25*",
        "a%3C1e308",
        "trial:1e300",
        "-tag:%27%22",
        "ab" * 900,
    ],
)
def test_no_filter_breaks_the_server(server: str, wanted: str) -> None:
    assert get(f"{server}/api/v1/runs/latest/samples?filter={wanted}").status in (200, 404, 422)


def test_a_store_that_is_gone_is_said_to_be(store: Store) -> None:
    with serving(store) as url:
        assert get(f"{url}/api/v1/health").json()["status"] == "ok"
        with store.database.writing() as connection:
            connection.exec_driver_sql("DROP TABLE scores")
        reply = get(f"{url}/api/v1/runs/latest/samples")
    assert (reply.status, list(reply.json())[:2]) == (503, ["detail", "code"])


def test_the_metrics_are_listed_with_what_they_measure(server: str) -> None:
    lines = {one["name"]: one for one in get(f"{server}/api/v1/metrics").json()}
    assert lines["goal_achievement"]["judged"]
    assert not lines["turn_count"]["judged"]
    assert all(line["line"] for line in lines.values())


def test_the_description_is_of_the_records_of_the_library(server: str) -> None:
    schemas = get(f"{server}/openapi.json").json()["components"]["schemas"]
    assert {"Run", "Grading", "Outcome", "Summary", "MetricResult", "Comparison", "SampleEntry"} <= schemas.keys()


def test_scores_are_listed_in_pages_and_by_grader(server: str, store: Store) -> None:
    keep(store, [outcome(f"s{i}", [turn(0, "a"), turn(1, "b")], GRADES, position=i) for i in range(4)], at=9e9)
    url = f"{server}/api/v1/runs/latest/scores"
    seen: list[tuple[str, str, int | None, float | None]] = []
    after = ""
    while after is not None:
        page = ScorePage.model_validate_json(get(f"{url}?limit=3{after and f'&after={after}'}").body)
        seen += [(one.sample_id, one.name, one.turn, one.value) for one in page.scores]
        after = page.next
    of_one = [("goal", None, 1.0), ("each", None, 0.5), ("each", 0, 0.25), ("each", 1, 0.75)]
    assert seen == [(f"s{i}", *score) for i in range(4) for score in of_one]
    named = ScorePage.model_validate_json(get(f"{url}?grader=goal").body)
    assert [one.name for one in named.scores] == ["goal"] * 4
    assert get(f"{url}?state=error").json() == {"scores": [], "next": None}


def test_the_turns_of_a_conversation_come_in_pages_with_their_grades(server: str, store: Store) -> None:
    keep(store, [outcome("a/0", [turn(0, "a"), turn(1, "b")], GRADES)], at=9e9)
    url = f"{server}/api/v1/runs/latest/samples/a/0/0/turns"
    first = TurnPage.model_validate_json(get(f"{url}?limit=1").body)
    rest = TurnPage.model_validate_json(get(f"{url}?after={first.next}").body)
    assert [[one.turn.index, one.turn.messages[0].text] for one in (*first.turns, *rest.turns)] == [[0, "a"], [1, "b"]]
    assert [one.scores["each"].value for one in (*first.turns, *rest.turns)] == [0.25, 0.75]
    assert rest.next is None
    assert get(f"{url}?target=other").status == 404
