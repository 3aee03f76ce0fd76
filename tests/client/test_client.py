"""The client against the real server, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.live import serving
from vivavoce.client import AsyncClient, Client
from vivavoce.errors import Fault, NotFound, UsageError
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.evaluation import evaluate
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import html

TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]
ROWS = [{"id": f"t/{number}", "messages": TALK, "tags": ["odd"] * (number % 2)} for number in range(450)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run of 450 conversations, which tests copy."""
    path = tmp_path_factory.mktemp("kept") / "vivavoce.db"
    evaluate(ROWS, ["refusal"], store=str(path))
    return path


@pytest.fixture
def url(kept: Path, tmp_path: Path) -> Iterator[str]:
    """A server around a store with one run of 450 conversations."""
    path = str(shutil.copy(kept, tmp_path))
    with Store.open(path) as store, serving(store) as url:
        yield url


def test_everything_in_pages_comes_once_and_in_order(url: str) -> None:
    with Client(url) as client:
        (entry,) = client.runs()
        assert [sample.sample_id for sample in client.samples(entry.id)] == [row["id"] for row in ROWS]
        assert len(list(client.samples(filter="tag:odd"))) == 225
        assert next(client.samples(sort="-position")).sample_id == "t/449"
        report = client.run(entry.id)
        assert (report.run.id, report.summary.attempts) == (entry.id, 450)
        assert client.conversation(entry.id, "t/3").attempt.key.sample_id == "t/3"


def test_turns_scores_and_a_comparison_are_read(url: str) -> None:
    with Client(url) as client:
        (turn,) = client.turns("latest", "t/7")
        assert [message.text for message in turn.turn.messages] == ["What do you offer?", "We offer auto."]
        scores = list(client.scores(grader="refusal"))
        assert [score.sample_id for score in scores if score.turn is None] == [row["id"] for row in ROWS]
        comparison = client.compare("latest", "latest")
        assert comparison.same
        assert comparison.targets[0].matched == len(ROWS)
        with pytest.raises(UsageError, match="named twice"):
            client.compare_several("latest", "latest", "latest")


def test_clusters_of_what_failed_are_read(url: str) -> None:
    with Client(url) as client:
        clusters = client.clusters(grader="refusal")
        assert (clusters.conversations, clusters.failed, clusters.clusters) == (len(ROWS), 0, ())
        with pytest.raises(NotFound, match="no grader 'other'"):
            client.clusters(grader="other")


def test_words_are_found_and_a_run_is_exported(url: str) -> None:
    with Client(url) as client:
        assert sorted(hit.sample_id for hit in client.search("offer auto")) == sorted(str(row["id"]) for row in ROWS)
        assert list(client.search("nobody said this", run="latest")) == []
        assert client.export("latest", "csv").count(b"refusal") == 450
        assert len(json.loads(client.export())["samples"]) == 450
        with pytest.raises(UsageError, match="no run"):
            client.export("nothing")


def test_a_conversation_is_evaluated_as_the_library_does(url: str) -> None:
    with Client(url) as client:
        report = client.evaluate(TALK, ["turn_count", "goal_achievement"], "learn the offer", must=["be kind"])
    assert report["turn_count"].score == 1.0
    assert (report["goal_achievement"].state, report.all_passed) == ("skipped", False)


def test_what_a_sample_says_is_sent_along(url: str) -> None:
    sample = Sample.model_validate({"id": "x", "messages": TALK, "ground_truth": "We offer auto.", "tags": ["a"]})
    with Client(url) as client:
        assert client.evaluate(TALK, ["exact_match"], sample=sample)["exact_match"].passed is True
        assert client.evaluate(TALK, ["exact_match"])["exact_match"].passed is None


def test_assertions_of_a_sample_are_sent_along(url: str) -> None:
    sample = Sample.model_validate({"id": "x", "messages": TALK, "expect": {"not_contains": "auto"}})
    with Client(url) as client:
        assert client.evaluate(TALK, ["expect"], sample=sample)["expect"].passed is False
        assert client.evaluate(TALK, ["expect"])["expect"].state == "skipped"


def test_a_job_is_followed_and_waited_for(url: str) -> None:
    with Client(url) as client:
        job = client.submit("evaluation", conversations=ROWS[:3], metrics=["refusal"], key="k")
        assert [event.kind for event in job.events()][-1] == "ended"
        assert (job.wait().status, job.record.done) == ("finished", 3)
        assert client.submit("evaluation", conversations=ROWS[:3], metrics=["refusal"], key="k").id == job.id
        assert client.job(job.id).cancel().status == "finished"
        assert len(list(client.runs(text=job.record.run))) == 1


async def test_the_client_waits_in_a_loop_too(url: str) -> None:
    async with AsyncClient(url) as client:
        reports = await asyncio.gather(*(client.evaluate(TALK, ["refusal"]) for _ in range(8)))
        assert len({report["refusal"].score for report in reports}) == 1
        job = await client.submit("evaluation", conversations=ROWS[:1], metrics=["refusal"])
        assert (await job.wait()).status == "finished"


def test_what_is_wrong_is_said_in_the_words_of_the_server(url: str) -> None:
    with Client(url) as client:
        with pytest.raises(UsageError, match="no run 'nothing'"):
            client.run("nothing")
        with pytest.raises(UsageError, match="filter, character 1"):
            list(client.samples(filter="no:field"))
        with pytest.raises(UsageError, match="no metric 'x'"):
            client.evaluate(TALK, ["x"])
        with pytest.raises(UsageError, match="no job"):
            client.job("nothing")
        with pytest.raises(UsageError, match="no suite"):
            client.submit("suite", suite="../x.yaml")


def test_a_token_is_brought(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "vivavoce.db")) as store, serving(store, token="opensesame") as url:
        with Client(url, "opensesame") as client:
            assert list(client.runs()) == []
        with Client(url, "other") as client, pytest.raises(UsageError, match="a token is required"):
            list(client.runs())


def test_a_server_that_is_none_is_a_fault() -> None:
    with (
        LoopbackServer(lambda _: html()) as other,
        Client(other.url) as client,
        pytest.raises(Fault, match="did not answer with"),
    ):
        client.run()
    with Client(other.url) as client, pytest.raises(Fault, match="cannot connect"):
        client.run()


def test_people_say_what_they_see_and_take_it_back(url: str) -> None:
    with Client(url) as client:
        label = client.label("latest", "t/3", "fail", "rude", grader="refusal")
        client.label("latest", "t/4", "unsure", turn=0)
        assert list(client.labels(grader="refusal")) == [label]
        assert client.agreement("latest", "refusal").n == 1
        assert client.unlabel("latest", "t/3", grader="refusal") == label
        assert [one.turn for one in client.labels()] == [0]
        with pytest.raises(UsageError, match=r"no label by .* here"):
            client.unlabel("latest", "t/3")


def test_what_a_server_has_is_listed_and_looked_up(url: str) -> None:
    with Client(url) as client:
        (run,) = client.runs()
        assert client.health().status == "ok"
        assert "refusal" in [metric.name for metric in client.metrics()]
        assert [grading.run_id for grading in client.gradings()] == [run.id]
        assert list(client.errors()) == []
        client.label(run.id, "t/7", "pass")
        assert [label.verdict for label in client.labels_of(run.id, "t/7")] == ["pass"]
        assert client.evaluate_stored(run.id, "t/7", ["refusal"])["refusal"].state == "scored"
        job = client.submit("evaluation", conversations=[{"id": "x", "messages": TALK}], metrics=["refusal"])
        assert [event.kind for event in client.events(job.id)][-1] == "ended"
        assert [job.id for job in client.jobs()] == [job.id] == [client.cancel(job.id).id]
        client.delete_run(run.id)
        assert next(action.action for action in client.audit()) == "run.delete"


def test_what_is_not_found_is_known_by_its_kind_and_its_name(url: str) -> None:
    with Client(url) as client:
        with pytest.raises(NotFound, match="no run 'nothing'") as caught:
            client.run("nothing")
        assert (caught.value.what, caught.value.name) == ("run", "nothing")
        with pytest.raises(NotFound) as caught:
            list(client.scores(grader="refusel"))
        assert (caught.value.what, caught.value.name) == ("grader", "refusel")
