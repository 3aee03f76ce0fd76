"""The page of clusters: what failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Annotated
from zipfile import ZIP_DEFLATED, ZipFile

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import NotFound
from vivavoce.extensions import Page
from vivavoce.features.clusters.cache import ask_for_names, cluster_cache, naming_judge, with_kept_names
from vivavoce.features.clusters.finding import ClusterResult
from vivavoce.features.clusters.naming import MAX_CLUSTERS
from vivavoce.features.clusters.records import Cluster, Clusters, Example, Kind
from vivavoce.features.clusters.suite import cluster_suite
from vivavoce.records.details import usage_text
from vivavoce.records.run import Run
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import Value, address, run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import policy_of, store_of
from vivavoce.server.users import user_of
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_SIZE = 20
"""Clusters on one page."""
KINDS: dict[Kind, str] = {
    "error": "Error",
    "tool": "Tool error",
    "expectation": "Violated expectation",
    "reason": "Similar reasons",
}


@router.get("/runs/{run}/clusters")
async def clusters(
    request: Request,
    run: str,
    grader: str | None = None,
    kind: str | None = None,
    part: Annotated[int, Query(ge=1, lt=2**31)] = 1,
    grading: str | None = None,
    judge: str | None = None,
) -> Response:
    """Show the clusters of a run, a page at a time; the filters are in the address."""
    return await _show(request, _Choice(run, grader or None, kind or None, part, grading, judge or None))


@router.post("/runs/{run}/clusters")
async def name(request: Request, run: str, form: Form) -> Response:
    """Have a judge name the clusters, and show them; errors are shown at once, because they are not stored."""
    fields = {key: form.get(key) or None for key in ("grader", "kind", "grading", "judge")}
    choice = _Choice(run, fields["grader"], fields["kind"], 1, fields["grading"], fields["judge"])
    judge = naming_judge(policy_of(request), choice.judge)
    clusters = await _load_clusters(request, choice.run, choice.grading, choice.grader)
    named_clusters = await ask_for_names(request, clusters, judge)
    if named_clusters.naming is not None and named_clusters.naming.notes:
        return await _show(request, choice, named_clusters)
    return RedirectResponse(clusters_page(clusters.run, **fields), 303)


def clusters_page(run: str, **query: Value) -> str:
    """Return the address of the clusters of what failed in a run."""
    return address("runs", run, "clusters", **query)


def links_of_run(run: Run, grading: str | None) -> list[Page]:
    """Return the link from the page of a run to its clusters."""
    return [Page("Failure clusters", clusters_page(run.id, grading=grading), place="foot")]


def _suite_link(run: str, cluster: str, **query: Value) -> str:
    return address("runs", run, "clusters", cluster, "suite", **query)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The run and the part of its clusters to show, and the judge whose names are used."""

    run: str
    grader: str | None
    kind: str | None
    part: int
    grading: str | None
    judge: str | None


async def _load_clusters(request: Request, run: str, grading: str | None, grader: str | None = None) -> Clusters:
    return (await cluster_cache(request).find_in_turn(request, run, grading, grader)).report


async def _show(request: Request, choice: _Choice, clusters: Clusters | None = None) -> Response:
    """Return the page; `clusters` are those that just got their names."""
    if choice.kind and choice.kind not in KINDS:
        raise NotFound("kind", choice.kind, within="clusters", known=set(KINDS))
    every = await _load_clusters(request, choice.run, choice.grading)
    selected = await _load_clusters(request, choice.run, choice.grading, choice.grader) if choice.grader else every
    return await to_thread.run_sync(lambda: _page_of(request, choice, every, selected, clusters))


def _page_of(
    request: Request, choice: _Choice, every: Clusters, clusters: Clusters, just_named: Clusters | None
) -> Response:
    grader, kind, part, grading, judge = choice.grader, choice.kind, choice.part, choice.grading, choice.judge
    store = store_of(request)
    stored_run = store.run(choice.run)
    policy = policy_of(request)
    named_by = naming_judge(policy, judge)
    clusters = just_named or with_kept_names(store, clusters, named_by)
    asked_count = 0 if clusters.naming is None else clusters.naming.asked
    judges = policy.judges if user_of(request).may("write") else []
    rows = [cluster for cluster in clusters.clusters if not kind or cluster.kind == kind]
    first = (part - 1) * PAGE_SIZE
    filters: dict[str, Value] = {
        "grader": grader or None,
        "kind": kind or None,
        "grading": grading,
        "judge": judge or None,
    }

    def link(example: Example) -> str:
        return sample_page(
            stored_run.id, example.sample_id, trial=example.trial, target=example.target, grading=grading
        )

    values: dict[str, object] = {
        "section": "runs",
        "run": stored_run,
        "found": clusters,
        "shown": rows[first : first + PAGE_SIZE],
        "listed": len(rows),
        "first": first,
        "kinds": KINDS,
        "kind": kind or "",
        "grader": grader or "",
        "graders": _graders(every.clusters),
        "chosen": grading,
        "link_of": link,
        "judges": judges
        if asked_count < min(len(clusters.clusters), MAX_CLUSTERS) or len(judges) > 1 or just_named
        else [],
        "judge": named_by,
        "asked_judge": judge or "",
        "used": "" if clusters.naming is None or clusters.naming.usage is None else usage_text(clusters.naming.usage),
        "form_key": form_key(request),
        "suite_of": partial(_suite_link, stored_run.id, grader=grader or None, grading=grading),
        "back": run_page(stored_run.id, grading=grading),
        "here": clusters_page(stored_run.id),
        "json_link": address(
            "api", "v1", "runs", stored_run.id, "clusters", grader=grader or None, grading=grading, judge=judge or None
        ),
        "previous_page": clusters_page(stored_run.id, **filters, part=part - 1) if part > 1 else None,
        "next_page": clusters_page(stored_run.id, **filters, part=part + 1) if first + PAGE_SIZE < len(rows) else None,
    }
    return page("clusters.html", values)


@router.get("/runs/{run}/clusters/{cluster}/suite")
async def suite(
    request: Request, run: str, cluster: str, grader: str | None = None, grading: str | None = None
) -> Response:
    """Return a suite of the samples of a cluster, with its dataset, as a zip file for the folder of the run's suite."""
    turn = await cluster_cache(request).find_in_turn(request, run, grading, grader or None)
    return await to_thread.run_sync(lambda: _suite_of(store_of(request), turn, cluster))


def _suite_of(store: Store, result: ClusterResult, cluster: str) -> Response:
    run = store.run(result.report.run)
    new_suite = cluster_suite(store, (run, store.grading(run.id, result.report.grading)), result, cluster, None)
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for name, text in new_suite.files.items():
            archive.writestr(name, text.encode("utf-8", "replace"))
    headers = {"content-disposition": f'attachment; filename="{new_suite.name}.zip"'}
    return Response(content.getvalue(), media_type="application/zip", headers=headers)


def _graders(clusters: tuple[Cluster, ...]) -> list[str]:
    return sorted({name for cluster in clusters for name in cluster.graders})
