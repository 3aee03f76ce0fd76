"""How far a judge can be believed: its figures by the labels of people, and the button that keeps them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import UsageError
from vivavoce.extensions import Page, answers_of
from vivavoce.features.calibration.calibration import calibration_report, find_calibration, from_people
from vivavoce.features.calibration.report import NAMES, closing, heading
from vivavoce.records.run import Grading
from vivavoce.report.graded_run import require_grader
from vivavoce.report.label_agreement import people_lines
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import calibration_data, calibration_page, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs, user_of
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SavedId = Annotated[str | None, Query(alias="kept")]


def links_of_labels(grading: Grading, grader: str) -> list[Page]:
    """Return the link from the labels of a grader to the calibration of its judge, if the grader has scores."""
    if grader not in grading.fingerprints:
        return []
    return [Page("Calibrate", calibration_page(grading.run_id, grader=grader))]


@router.get("/runs/{run}/calibration")
def calibration(
    request: Request, run: str, grader: str, grading: str | None = None, saved_id: SavedId = None
) -> Response:
    """Show what the labels of a run say of a judge."""
    store, scores = _load_grading(request, run, grading, grader)
    user = user_of(request)
    judge_calibration, is_saved = find_calibration(store, scores, grader, user.name, saved_id)
    values: dict[str, object] = {
        "section": "label",
        "run": store.run(scores.run_id),
        "run_link": run_page(scores.run_id, grading=grading),
        "found": (report := calibration_report(store, scores, judge_calibration, is_saved=is_saved)),
        "heading": heading(report),
        "lines": [*people_lines(report.people), *closing(report)],
        "names": NAMES,
        "kept_link": partial(calibration_page, scores.run_id, grader=grader, grading=grading),
        "kept": store.calibrations.of_run(scores.run_id, grader),
        "fingerprint": scores.fingerprints.get(grader),
        "here": calibration_page(scores.run_id, grader=grader, grading=grading),
        "data": calibration_data(scores.run_id, grader=grader, grading=grading, kept=saved_id),
        "ways": list(answers_of(Page, "ways_to_label", run=scores.run_id, grader=grader)),
        "form_key": form_key(request) if user.may("write") else None,
    }
    return page("calibration.html", values)


@router.post("/runs/{run}/calibration", dependencies=[needs("write")])
def keep(request: Request, run: str, grader: str, form: Form, grading: str | None = None) -> Response:
    """Keep the labels as they are now, and show them."""
    store, scores = _load_grading(request, run, grading, grader)
    if form.get("action") != "keep":
        raise UsageError("unknown action; save the labels of a judge")
    judge_calibration = from_people(store, scores, grader, user_of(request).name)
    if not judge_calibration.drawn_labels:
        raise UsageError("nothing to save: no label is of a randomly sampled conversation")
    store.calibrations.add(judge_calibration)
    return RedirectResponse(calibration_page(scores.run_id, grader=grader, grading=grading), 303)


def _load_grading(request: Request, run: str, grading: str | None, grader: str) -> tuple[Store, Grading]:
    store = store_of(request)
    scores = store.grading(store.run(run).id, grading)
    require_grader(grader, scores)
    return store, scores
