from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from report.cases import TIMEOUT, keep, outcome
from store.postgresql import Server, server
from vivavoce.errors import NotFound
from vivavoce.features.clusters import reasons
from vivavoce.features.clusters.finding import ClusterResult, find_clusters
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding, Score, mean_of_turns
from vivavoce.records.trajectory import Turn
from vivavoce.stats.intervals import wilson
from vivavoce.store.store import Store

from .cases import fails, planted_causes


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        with Store.open(str(tmp_path / "vivavoce.db")) as store:
            yield store
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.store() as address, Store.open(address) as store:
        yield store


def find_in(
    store: Store, outcomes: list[Outcome], embedder: str | None = "words", grader: str | None = None
) -> ClusterResult:
    graded = asyncio.run(keep(store, outcomes, gate=None))
    return find_clusters(store, graded.grading, embedder=embedder, grader=grader)


def with_tool_error(sample: str, text: str) -> Outcome:
    failing = outcome(sample, {"judge": Score(value=0.0, reason=f"{sample} is wrong")})
    call = ToolCall(id="c", name="refund", args={})
    result = ToolMessage(content=text, tool_call_id="c")
    turn = Turn(index=0, messages=[HumanMessage(content="Hi"), AIMessage(tool_calls=[call]), result])
    trajectory = failing.attempt.trajectory.model_copy(update={"turns": [turn]})
    return failing.model_copy(update={"attempt": failing.attempt.model_copy(update={"trajectory": trajectory})})


@pytest.mark.parametrize(("embedder", "least"), [("words", 5), ("local", 6)])
def test_a_cause_phrased_three_ways_is_one_cluster(store: Store, embedder: str, least: int) -> None:
    causes = planted_causes("held_out")
    outcomes = [fails(f"{cause}-{n}", text) for cause, texts in causes.items() for n, text in enumerate(texts)]
    result = find_in(store, outcomes, embedder)
    whole = [keys for keys in result.members.values() if len({key.sample_id.split("-")[0] for key in keys}) == 1]
    assert sum(len(keys) == 3 for keys in whole) >= least
    assert len(whole) == len(result.members)
    assert result.report.method.startswith(embedder)


def test_each_cluster_has_its_count_interval_and_three_examples(store: Store) -> None:
    outcomes = [fails(f"s{n}", f"The reply gives order {n} the wrong price.") for n in range(5)]
    outcomes += [outcome(f"ok{n}", {"judge": 1.0}) for n in range(15)]
    result = find_in(store, outcomes)
    (cluster,) = result.report.clusters
    assert (cluster.kind, cluster.conversations, cluster.failures, cluster.share) == ("reason", 5, 5, 0.25)
    assert (cluster.low, cluster.high) == wilson(5, 20)
    assert [example.sample_id for example in cluster.examples] == ["s0", "s1", "s2"]
    assert cluster.examples[0].reason == "The reply gives order 0 the wrong price."
    assert {"order", "price", "wrong"} <= set(cluster.words)
    assert (result.report.conversations, result.report.failed, result.report.failures) == (20, 5, 5)


def test_violated_expectations_and_errors_of_tools_are_exact(store: Store) -> None:
    missed = Finding(kind="assertion", what="says 'refund'", verdict="missed", state="fail")
    holding = missed.model_copy(update={"what": "says hello", "verdict": "holds", "state": "pass"})
    score = Score(value=0.0, reason="any", findings=(holding, missed))
    outcomes = [outcome(f"e{n}", {"judge": score}) for n in range(2)]
    outcomes += [with_tool_error(f"t{n}", f'{{"error": "no order {n}4711 in \'shop-{n}\'"}}') for n in range(3)]
    result = find_in(store, outcomes).report
    titles = [(cluster.kind, cluster.title, cluster.conversations) for cluster in result.clusters]
    assert titles == [
        ("tool", "refund: no order <id> in <value>", 3),
        ("expectation", "judge: assertion: says <value>", 2),
    ]


def test_errors_are_clusters_of_their_own(store: Store) -> None:
    slow = TIMEOUT.model_copy(update={"message": "no answer within 7 s"})
    outcomes = [outcome("a", {}, failure=TIMEOUT), outcome("b", {}, failure=slow), fails("c", "It is rude.")]
    result = find_in(store, outcomes).report
    assert [(cluster.kind, cluster.title, cluster.conversations) for cluster in result.clusters] == [
        ("error", "target: timeout: no answer within <id> s", 2),
        ("reason", "It is rude.", 1),
    ]


def test_turns_count_as_failures_and_their_conversation_once(store: Store) -> None:
    turns = [Score(turn=n, value=0.0, reason="The price is wrong.") for n in range(2)]
    result = find_in(store, [outcome("a", {"judge": mean_of_turns(turns)}), fails("b", "The price is wrong!")]).report
    (cluster,) = result.clusters
    assert (cluster.conversations, cluster.failures, [example.turn for example in cluster.examples]) == (
        2,
        3,
        [0, None],
    )


def test_trials_of_one_sample_are_not_independent(store: Store) -> None:
    outcomes = [outcome("a", {"judge": Score(value=0.0, reason="Rude.")}, trial=n) for n in range(4)]
    outcomes += [outcome(name, {"judge": 1.0}, trial=n) for name in ("b", "c") for n in range(4)]
    (cluster,) = find_in(store, outcomes).report.clusters
    assert cluster.low is not None
    assert cluster.low < wilson(4, 12)[0]


def test_the_result_is_the_same_again_and_a_grader_narrows_it(store: Store) -> None:
    outcomes = [fails("a", "It is rude."), fails("b", "No price.", "exact"), fails("c", "Impolite and rude.")]
    result = find_in(store, outcomes)
    graded = store.grading("run-1")
    assert find_clusters(store, graded, embedder="words").report == result.report
    only = find_clusters(store, graded, embedder="words", grader="exact").report
    assert [cluster.title for cluster in only.clusters] == ["No price."]
    assert only.clusters[0].id in {cluster.id for cluster in result.report.clusters}
    assert only.conversations == 3
    with pytest.raises(NotFound, match="no grader 'exakt'"):
        find_clusters(store, graded, grader="exakt")
    with pytest.raises(NotFound, match="no cluster 'x'"):
        result.cluster("x")


@pytest.mark.parametrize("embedder", ["words", "local"])
def test_a_run_without_a_failure_has_no_cluster(store: Store, embedder: str) -> None:
    result = find_in(store, [outcome("a", {"judge": 1.0})], embedder).report
    assert (result.clusters, result.failed, result.conversations) == ((), 0, 1)


def test_a_failure_without_a_reason_is_found(store: Store) -> None:
    result = find_in(store, [outcome(name, {"judge": Score(value=0.0)}) for name in "ab"]).report
    assert [(cluster.title, cluster.conversations) for cluster in result.clusters] == [("no reason was given", 2)]


def test_hostile_text_stays_data(store: Store) -> None:
    reasons = ["\x1b[2J<script>xss()</script>", "a" * 100_000, "\ud800 half", "{{ 7 * 7 }}", "'" * 5000]
    result = find_in(store, [fails(f"s{n}", reason) for n, reason in enumerate(reasons)]).report
    assert sum(cluster.conversations for cluster in result.clusters) == len(reasons)
    assert all("\x1b" not in cluster.title and len(cluster.title) <= 400 for cluster in result.clusters)


def test_many_long_reasons_are_compared_by_their_words(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "MOST_CHARACTERS", 60)
    outcomes = [fails("a", "The price of the order is wrong."), fails("b", "It asks for a password and is rude.")]
    method = "words: reasons of 67 characters are more than 60"
    assert find_in(store, outcomes, None).report.method == method
