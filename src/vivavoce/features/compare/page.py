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
from vivavoce.features.compare.plots import difference, finding, lead, scale_of, signed, uneven
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

SHOWN = 50
"""Samples of a kind on one page."""

Kind: TypeAlias = Literal["worsened", "improved", "broke", "fixed", "unmatched_a", "unmatched_b"]


class NamedScores(BaseModel):
    """Two runs, and their sets of scores; an empty name counts as none."""

    a: str = ""
    b: str = ""
    grading_a: str = ""
    grading_b: str = ""


class Named(NamedScores):
    """The runs with the targets to compare.

    `b` may name several runs, with blanks between them; each is then compared with `a`.
    """

    target_a: str = ""
    target_b: str = ""
    grader: str = ""
    only: str = ""
    first: int = Field(default=0, ge=0, lt=2**31, alias="from")


@router.get("/compare")
def compare_runs(request: Request, named: Annotated[Named, Query()]) -> Response:
    """Compare two runs; `only` shows all samples of one kind, from the place `from` on."""
    store = store_of(request)
    a, b, targets = named.a.strip(), named.b.strip(), (named.target_a, named.target_b)
    if not a or not b:
        return page("choose_runs.html", choice(store, a, b))
    try:
        if len(others := b.split()) > 1:
            return page("compare_several.html", several_values(store, comparisons_of(request), [a, *others]))
        sides = Sides.read(store, named)
        if named.grader:
            check_grader(named.grader, sides.grading_a, sides.grading_b)
        found = sides.compare(store, comparisons_of(request))
    except UsageError as error:
        problem = safe("; ".join(map(str, error.problems)))
        return page("choose_runs.html", choice(store, a, b, problem, targets), answered(error).status)
    kind = next((kind for kind in get_args(Kind) if kind == named.only), None)
    values = _values(_View(store, sides, found, named.grader, kind, named.first))
    return page("compare.html", {**values, "menu": views_menu(request)})


@router.get("/compare/suites")
def compare_suites(request: Request, named: Annotated[NamedScores, Query()]) -> Response:
    """Show the suites of two runs, line by line where they differ."""
    sides = Sides.read(store_of(request), Named(**named.model_dump()))
    lines = suite_difference((sides.a, sides.grading_a), (sides.b, sides.grading_b))
    whole = compare_page(**sides.named)
    return page("compare_suites.html", {"section": "compare", "sides": sides, "lines": lines, "whole": whole})


@dataclass(frozen=True, slots=True)
class Sides:
    """Two graded runs; `named` are the other parameters of the address."""

    a: Run
    b: Run
    grading_a: Grading
    grading_b: Grading
    named: dict[str, str | None]

    @classmethod
    def read(cls, store: Store, named: Named) -> Sides:
        """Read both sides.

        Raises:
            UsageError: there is no such run or grading.
        """
        a, b = store.run(named.a.strip(), whole=True), store.run(named.b.strip(), whole=True)
        grading_a, grading_b = (
            store.grading(a.id, named.grading_a or None),
            store.grading(b.id, named.grading_b or None),
        )
        kept: dict[str, str | None] = {
            "a": a.id,
            "b": b.id,
            "grading_a": grading_a.id if named.grading_a else None,
            "grading_b": grading_b.id if named.grading_b else None,
            "target_a": named.target_a or None,
            "target_b": named.target_b or None,
        }
        return cls(a, b, grading_a, grading_b, kept)

    def compare(self, store: Store, comparisons: Comparisons) -> Comparison:
        """Compare them, without reasons of flips.

        Raises:
            UsageError: a target does not exist, or no target is on both sides.
        """
        targets = self.named["target_a"], self.named["target_b"]
        return comparisons.compare(store, self.grading_a, self.grading_b, targets, reasons=False)


@dataclass(frozen=True, slots=True)
class _View:
    """The request, and the comparison."""

    store: Store
    sides: Sides
    found: Comparison
    grader: str
    only: Kind | None
    first: int

    def link(self, **changed: str | int | None) -> str:
        """Return the address of this page with changed parameters."""
        kept = {**self.sides.named, "grader": self.grader or None}
        return compare_page(**{**kept, **changed})


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
    found, sides = view.found, view.sides
    target = found.targets[0]
    headline = str(gate_of(sides.grading_b).get("metric_key") or "reward")
    shown = next((grader for grader in target.graders if grader.name == view.grader), None) or lead(
        target.graders, headline
    )
    scale = scale_of(target.graders)
    return {
        "section": "compare",
        "found": found,
        "target": target,
        "heads": _heads(view, target),
        "finding": "" if found.same else safe(finding(target, shown)),
        "differences": [
            difference(grader, scale, view.link(grader=grader.name) + "#flips", shown=grader is shown)
            for grader in target.graders
        ],
        "scale": scale,
        "signed": signed,
        "shown": shown,
        "chance": uneven(shown) if shown else None,
        "lists": _lists(view, target, shown),
        "only": view.only,
        "whole": view.link(),
        "targets": _targets(view),
        "changed": [grader for grader in target.graders if grader.note],
        "spoiled": list(spoiled_sides(target, ("A", "B"))),
        "regrade": [
            (side, new_job_page(grade=run.id), _command(run)) for side, run in (("A", sides.a), ("B", sides.b))
        ],
        "suites_link": compared_suites(**{name: sides.named[name] for name in NamedScores.model_fields}),
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
            "link": run_page(run.id, grading=grading.id if named else None),
            "other": compare_page(**{other: sides.named[other]}),
            "complete": grading.finished_at is not None,
            "named": named is not None,
        }
        for side, run, grading, name, other, named in (
            ("A", sides.a, sides.grading_a, target.target_a, "b", sides.named["grading_a"]),
            ("B", sides.b, sides.grading_b, target.target_b, "a", sides.named["grading_b"]),
        )
    ]


def _targets(view: _View) -> list[tuple[str, str, str]]:
    """Return the pairs of targets to choose from, if there are several."""
    pairs = [(target.target_a, target.target_b) for target in view.found.targets]
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
    some = everything[first : first + SHOWN]
    lines = (
        _flips(view, target, comparison, kind, [one for one in some if isinstance(one, Flip)])
        if comparison is not None and kind in ("worsened", "improved")
        else _samples(view, target, kind, [one for one in some if isinstance(one, str)])
    )
    before = view.link(only=kind, **{"from": max(first - SHOWN, 0) or None}) if first else None
    after = view.link(only=kind, **{"from": first + SHOWN}) if first + SHOWN < len(everything) else None
    return _List(kind, lines, len(everything), view.link(only=kind), before, after)


def _flips(
    view: _View, target: TargetComparison, comparison: GraderComparison, kind: Kind, some: Sequence[Flip]
) -> list[_Line]:
    """Return flips with the reason of the failing side."""
    store, sides = view.store, view.sides
    worse = kind == "worsened"
    grading, name = (sides.grading_b, target.target_b) if worse else (sides.grading_a, target.target_a)
    ids = [one.sample_b if worse else one.sample_a for one in some]
    attempts = store.scenarios.numbers(grading.run_id, name, ids)
    why, about = (
        reasons_of(store, grading, comparison.name, attempts),
        store.scenarios.titles(grading.run_id, name, ids),
    )
    where: dict[str, Any] = {
        **sides.named,
        "target_a": target.target_a,
        "target_b": target.target_b,
        "grader": comparison.name,
        "only": kind,
    }
    return [
        _Line(
            title=about.get(sample, sample),
            name=one.sample_a if one.sample_a == one.sample_b else f"{one.sample_a} / {one.sample_b}",
            link=compared_samples(**where, sample_a=one.sample_a, sample_b=one.sample_b),
            scores=f"{one.score_a:.2f} → {one.score_b:.2f}",
            why=why.get(sample, ""),
        )
        for one, sample in zip(some, ids, strict=True)
    ]


def _samples(view: _View, target: TargetComparison, kind: Kind, ids: Sequence[str]) -> list[_Line]:
    """Return samples that only one side has, or has scored, each with a link to its conversation."""
    sides = view.sides
    on_a = kind == "unmatched_a"
    run, name = (sides.a, target.target_a) if on_a else (sides.b, target.target_b)
    grading = sides.named["grading_a" if on_a else "grading_b"]
    about = view.store.scenarios.titles(run.id, name, ids)
    return [_Line(about.get(one, one), one, sample_page(run.id, one, target=name, grading=grading)) for one in ids]
