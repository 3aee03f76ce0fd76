"""The comparison of two runs: what changed, how certain that is, and the samples that show it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from vivavoce.errors import UsageError
from vivavoce.features.compare.cache import Comparisons, comparisons_of
from vivavoce.features.compare.choosing import choice, compare_page, compared_samples, compared_suites, comparison_data
from vivavoce.features.compare.plots import difference, finding, format_signed, lead, scale_of, uneven
from vivavoce.features.compare.several_page import several_values
from vivavoce.features.compare.text_difference import suite_difference
from vivavoce.records.run import Grading, Run
from vivavoce.report.comparison.comparison import Comparison, Flip, GraderComparison, TargetComparison
from vivavoce.report.comparison.pairing import reasons_of
from vivavoce.report.tester import spoiled_sides
from vivavoce.report.verdict import gate_of
from vivavoce.safe_text import safe
from vivavoce.server.pages.links import new_job_page, run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.pages.views import views_menu
from vivavoce.server.requested_metrics import check_grader
from vivavoce.server.state import store_of
from vivavoce.server.statuses import answered
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_SIZE = 50
"""Samples of a kind on one page."""

Kind: TypeAlias = Literal["worsened", "improved", "broke", "fixed", "unmatched_a", "unmatched_b"]


class NamedScores(BaseModel):
    """Two runs, and their sets of scores; an empty name counts as none."""

    a: str = ""
    b: str = ""
    grading_a: str = ""
    grading_b: str = ""


class ComparisonQuery(NamedScores):
    """The runs with the targets to compare.

    `b` may name several runs, with blanks between them; each is then compared with `a`.
    """

    target_a: str = ""
    target_b: str = ""
    grader: str = ""
    only: str = ""
    first: int = Field(default=0, ge=0, lt=2**31, alias="from")


@router.get("/compare")
def compare_runs(request: Request, query: Annotated[ComparisonQuery, Query()]) -> Response:
    """Compare two runs; `only` shows all samples of one kind, from the place `from` on."""
    store = store_of(request)
    a, b, targets = query.a.strip(), query.b.strip(), (query.target_a, query.target_b)
    if not a or not b:
        return page("choose_runs.html", choice(store, a, b))
    try:
        if len(others := b.split()) > 1:
            return page("compare_several.html", several_values(store, comparisons_of(request), [a, *others]))
        sides = Sides.read(store, query)
        if query.grader:
            check_grader(query.grader, sides.grading_a, sides.grading_b)
        comparison = sides.compare(store, comparisons_of(request))
    except UsageError as error:
        problem = safe("; ".join(map(str, error.problems)))
        return page("choose_runs.html", choice(store, a, b, problem, targets), answered(error).status)
    kind = next((kind for kind in get_args(Kind) if kind == query.only), None)
    values = _values(_View(store, sides, comparison, query.grader, kind, query.first))
    return page("compare.html", {**values, "menu": views_menu(request)})


@router.get("/compare/suites")
def compare_suites(request: Request, query: Annotated[NamedScores, Query()]) -> Response:
    """Show the suites of two runs, line by line where they differ."""
    sides = Sides.read(store_of(request), ComparisonQuery(**query.model_dump()))
    lines = suite_difference((sides.a, sides.grading_a), (sides.b, sides.grading_b))
    whole = compare_page(**sides.parameters)
    return page("compare_suites.html", {"section": "compare", "sides": sides, "lines": lines, "whole": whole})


@dataclass(frozen=True, slots=True)
class Sides:
    """Two graded runs; `named` are the other parameters of the address."""

    a: Run
    b: Run
    grading_a: Grading
    grading_b: Grading
    parameters: dict[str, str | None]

    @classmethod
    def read(cls, store: Store, query: ComparisonQuery) -> Sides:
        """Read both sides.

        Raises:
            UsageError: there is no such run or grading.
        """
        a, b = store.run(query.a.strip(), whole=True), store.run(query.b.strip(), whole=True)
        grading_a, grading_b = (
            store.grading(a.id, query.grading_a or None),
            store.grading(b.id, query.grading_b or None),
        )
        parameters: dict[str, str | None] = {
            "a": a.id,
            "b": b.id,
            "grading_a": grading_a.id if query.grading_a else None,
            "grading_b": grading_b.id if query.grading_b else None,
            "target_a": query.target_a or None,
            "target_b": query.target_b or None,
        }
        return cls(a, b, grading_a, grading_b, parameters)

    def compare(self, store: Store, comparisons: Comparisons) -> Comparison:
        """Compare them, without reasons of flips.

        Raises:
            UsageError: a target does not exist, or no target is on both sides.
        """
        targets = self.parameters["target_a"], self.parameters["target_b"]
        return comparisons.compare(store, self.grading_a, self.grading_b, targets, reasons=False)


@dataclass(frozen=True, slots=True)
class _View:
    """The request, and the comparison."""

    store: Store
    sides: Sides
    comparison: Comparison
    grader: str
    only: Kind | None
    first: int

    def link(self, **changed: str | int | None) -> str:
        """Return the address of this page with changed parameters."""
        parameters = {**self.sides.parameters, "grader": self.grader or None}
        return compare_page(**{**parameters, **changed})


@dataclass(frozen=True, slots=True)
class _Line:
    """A sample in a list: its title, its ids, its scores if it flipped, and the reason."""

    title: str
    name: str
    link: str
    scores: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """Some samples of a kind, and their total number."""

    kind: Kind
    lines: list[_Line]
    total: int
    link: str
    before: str | None = None
    after: str | None = None


def _values(view: _View) -> dict[str, object]:
    comparison, sides = view.comparison, view.sides
    target = comparison.targets[0]
    headline = str(gate_of(sides.grading_b).get("metric_key") or "reward")
    lead_grader = next((grader for grader in target.graders if grader.name == view.grader), None) or lead(
        target.graders, headline
    )
    scale = scale_of(target.graders)
    return {
        "section": "compare",
        "found": comparison,
        "target": target,
        "heads": _heads(view, target),
        "finding": "" if comparison.same else safe(finding(target, lead_grader)),
        "differences": [
            difference(grader, scale, view.link(grader=grader.name) + "#flips", is_shown=grader is lead_grader)
            for grader in target.graders
        ],
        "scale": scale,
        "signed": format_signed,
        "shown": lead_grader,
        "chance": uneven(lead_grader) if lead_grader else None,
        "lists": _lists(view, target, lead_grader),
        "only": view.only,
        "whole": view.link(),
        "targets": _targets(view),
        "changed": [grader for grader in target.graders if grader.note],
        "spoiled": list(spoiled_sides(target, ("A", "B"))),
        "regrade": [
            (side, new_job_page(grade=run.id), _command(run)) for side, run in (("A", sides.a), ("B", sides.b))
        ],
        "suites_link": compared_suites(**{name: sides.parameters[name] for name in NamedScores.model_fields}),
        "json_link": comparison_data(a=sides.a.id, b=sides.b.id),
    }


def _heads(view: _View, target: TargetComparison) -> list[dict[str, object]]:
    """Return the heads of both sides."""
    sides = view.sides
    return [
        {
            "side": side,
            "run": run,
            "grading": grading,
            "target": name,
            "link": run_page(run.id, grading=grading.id if chosen_grading else None),
            "other": compare_page(**{other: sides.parameters[other]}),
            "complete": grading.finished_at is not None,
            "named": chosen_grading is not None,
        }
        for side, run, grading, name, other, chosen_grading in (
            ("A", sides.a, sides.grading_a, target.target_a, "b", sides.parameters["grading_a"]),
            ("B", sides.b, sides.grading_b, target.target_b, "a", sides.parameters["grading_b"]),
        )
    ]


def _targets(view: _View) -> list[tuple[str, str, str]]:
    """Return the pairs of targets to choose from, if there are several."""
    pairs = [(target.target_a, target.target_b) for target in view.comparison.targets]
    return [(*pair, view.link(target_a=pair[0], target_b=pair[1])) for pair in pairs] if len(pairs) > 1 else []


def _command(run: Run) -> str:
    return f"viva runs grade {shlex.quote(safe(run.id))} --suite FILE"


def _lists(view: _View, target: TargetComparison, comparison: GraderComparison | None) -> dict[Kind, _List]:
    """Return the samples of each kind, or more of the requested kind."""
    kinds = get_args(Kind) if view.only is None else (view.only,)
    return {kind: _list(view, kind, target, comparison) for kind in kinds}


def _list(view: _View, kind: Kind, target: TargetComparison, comparison: GraderComparison | None) -> _List:
    everything: Sequence[Flip | str] = (
        getattr(target, kind) if kind.startswith("unmatched") else (getattr(comparison, kind) if comparison else ())
    )
    first = view.first if view.only else 0
    some = everything[first : first + PAGE_SIZE]
    lines = (
        _flips(view, target, comparison, kind, [flip for flip in some if isinstance(flip, Flip)])
        if comparison is not None and kind in ("worsened", "improved")
        else _samples(view, target, kind, [sample for sample in some if isinstance(sample, str)])
    )
    before = view.link(only=kind, **{"from": max(first - PAGE_SIZE, 0) or None}) if first else None
    after = view.link(only=kind, **{"from": first + PAGE_SIZE}) if first + PAGE_SIZE < len(everything) else None
    return _List(kind, lines, len(everything), view.link(only=kind), before, after)


def _flips(
    view: _View, target: TargetComparison, comparison: GraderComparison, kind: Kind, some: Sequence[Flip]
) -> list[_Line]:
    """Return flips with the reason of the failing side."""
    store, sides = view.store, view.sides
    worse = kind == "worsened"
    grading, name = (sides.grading_b, target.target_b) if worse else (sides.grading_a, target.target_a)
    ids = [flip.sample_b if worse else flip.sample_a for flip in some]
    attempts = store.scenarios.numbers(grading.run_id, name, ids)
    why, about = (
        reasons_of(store, grading, comparison.name, attempts),
        store.scenarios.titles(grading.run_id, name, ids),
    )
    where: dict[str, Any] = {
        **sides.parameters,
        "target_a": target.target_a,
        "target_b": target.target_b,
        "grader": comparison.name,
        "only": kind,
    }
    return [
        _Line(
            title=about.get(sample, sample),
            name=flip.sample_a if flip.sample_a == flip.sample_b else f"{flip.sample_a} / {flip.sample_b}",
            link=compared_samples(**where, sample_a=flip.sample_a, sample_b=flip.sample_b),
            scores=f"{flip.score_a:.2f} → {flip.score_b:.2f}",
            why=why.get(sample, ""),
        )
        for flip, sample in zip(some, ids, strict=True)
    ]


def _samples(view: _View, target: TargetComparison, kind: Kind, ids: Sequence[str]) -> list[_Line]:
    """Return samples that only one side has, or has scored, each with a link to its conversation."""
    sides = view.sides
    on_a = kind == "unmatched_a"
    run, name = (sides.a, target.target_a) if on_a else (sides.b, target.target_b)
    grading = sides.parameters["grading_a" if on_a else "grading_b"]
    about = view.store.scenarios.titles(run.id, name, ids)
    return [
        _Line(about.get(sample, sample), sample, sample_page(run.id, sample, target=name, grading=grading))
        for sample in ids
    ]
