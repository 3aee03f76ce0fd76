"""The page of clusters: what failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Annotated, cast
from zipfile import ZIP_DEFLATED, ZipFile

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import NotFound
from vivavoce.records.spending import in_words
from vivavoce.report.clusters.cluster import Cluster, Clusters, Example, Kind
from vivavoce.report.clusters.suite import cluster_suite
from vivavoce.server.clustering import ClusterCache, ask_for_names, naming_judge, with_kept_names
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import Value, clusters_data, clusters_page, run_page, sample_page, suite_download
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.users import user_of
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 20
"""Clusters on one page."""
KINDS: dict[Kind, str] = {
    "error": "Error",
    "tool": "Error of a tool",
    "expectation": "Violated expectation",
    "reason": "Reasons alike",
}


@router.get("/runs/{run}/clusters")
def clusters(
    request: Request,
    run: str,
    grader: str | None = None,
    kind: str | None = None,
    part: Annotated[int, Query(ge=1, lt=2**31)] = 1,
    grading: str | None = None,
    judge: str | None = None,
) -> Response:
    """Show the clusters of a run, a page at a time; the filters are in the address."""
    store = cast("Store", request.app.state.store)
    cache = cast("ClusterCache", request.app.state.clusters)
    held = store.run(run)
    graded = store.grading(held.id, grading)
    if kind and kind not in KINDS:
        raise NotFound("kind", kind, within="clusters", known=set(KINDS))
    policy: ServerPolicy = request.app.state.policy
    named_by = naming_judge(policy, judge)
    found = with_kept_names(store, cache.find(store, graded, grader or None).report, named_by)
    listed = [one for one in found.clusters if not kind or one.kind == kind]
    first = (part - 1) * SHOWN
    kept: dict[str, Value] = {
        "grader": grader or None,
        "kind": kind or None,
        "grading": grading,
        "judge": judge or None,
    }

    def link(example: Example) -> str:
        return sample_page(held.id, example.sample_id, trial=example.trial, target=example.target, grading=grading)

    values: dict[str, object] = {
        "section": "runs",
        "run": held,
        "found": found,
        "shown": listed[first : first + SHOWN],
        "listed": len(listed),
        "first": first,
        "kinds": KINDS,
        "kind": kind or "",
        "grader": grader or "",
        "graders": _graders(cache.find(store, graded).report.clusters),
        "chosen": grading,
        "link_of": link,
        "judges": policy.judges if user_of(request).may("write") else [],
        "judge": named_by,
        "asked_judge": judge or "",
        "used": "" if found.naming is None or found.naming.usage is None else in_words(found.naming.usage),
        "form_key": form_key(request),
        "suite_of": partial(suite_download, held.id, grader=grader or None, grading=grading),
        "back": run_page(held.id, grading=grading),
        "here": clusters_page(held.id),
        "json_link": clusters_data(held.id, grader=grader or None, grading=grading, judge=judge or None),
        "previous_page": clusters_page(held.id, **kept, part=part - 1) if part > 1 else None,
        "next_page": clusters_page(held.id, **kept, part=part + 1) if first + SHOWN < len(listed) else None,
    }
    return page("clusters.html", values)


@router.post("/runs/{run}/clusters")
async def name(request: Request, run: str, form: Form) -> Response:
    """Have a judge name the clusters, and show them."""
    store = cast("Store", request.app.state.store)
    cache = cast("ClusterCache", request.app.state.clusters)
    judge = naming_judge(request.app.state.policy, form.get("judge"))
    chosen = {key: form.get(key) or None for key in ("grader", "kind", "grading")}

    def find() -> tuple[str, Clusters]:
        held = store.run(run)
        return held.id, cache.find(store, store.grading(held.id, chosen["grading"]), chosen["grader"]).report

    run_id, found = await to_thread.run_sync(find)
    await ask_for_names(request, found, judge)
    return RedirectResponse(clusters_page(run_id, **chosen, judge=judge), 303)


@router.get("/runs/{run}/clusters/{cluster}/suite")
def suite(request: Request, run: str, cluster: str, grader: str | None = None, grading: str | None = None) -> Response:
    """Return a suite of the samples of a cluster, with its dataset, as a zip file for the folder of the run's suite."""
    store = cast("Store", request.app.state.store)
    cache = cast("ClusterCache", request.app.state.clusters)
    held = store.run(run)
    graded = store.grading(held.id, grading)
    made = cluster_suite(store, (held, graded), cache.find(store, graded, grader or None), cluster, None)
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for name, text in made.files.items():
            archive.writestr(name, text.encode("utf-8", "replace"))
    headers = {"content-disposition": f'attachment; filename="{made.name}.zip"'}
    return Response(content.getvalue(), media_type="application/zip", headers=headers)


def _graders(found: tuple[Cluster, ...]) -> list[str]:
    return sorted({name for one in found for name in one.graders})
