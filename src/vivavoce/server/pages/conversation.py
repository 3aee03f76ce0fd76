"""The previous and the next conversation of a run, in its plan and in a list of it, found without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.extensions import PagePart, PageSection, answers_of
from vivavoce.records.run import AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import to_index, to_number
from vivavoce.report.html.conversation import Place
from vivavoce.report.html.conversation import conversation as shown
from vivavoce.server.pages.comments import comment_section
from vivavoce.server.pages.content import showing
from vivavoce.server.pages.forms import form_key
from vivavoce.server.pages.links import FirstTurn, TrialNumber, run_page, sample_data, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.requested_metrics import check_graders
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.browse.browse import Around
from vivavoce.store.browse.filter import Has, Term, parse_filter
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.runs.naming import no_conversation
from vivavoce.store.store import Store

_FAILING: tuple[Term, ...] = tuple(Has("state", state, negated=True) for state in ("pass", "measured", "skip"))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The neighbours in the plan, and those in a list: the one that was filtered and sorted, else the failing ones."""

    before: SampleEntry | None
    after: SampleEntry | None
    listed: Around


def neighbours(
    store: Store, grading_id: str, position: int, terms: Sequence[Term] | None = None, sort: str = "position"
) -> Neighbours:
    """Return the neighbours of a place in the plan; without terms the list is that of failing conversations.

    A conversation fails if it has an error or did not pass.

    Raises:
        UsageError: there is no such grading.
    """
    planned = store.browse.around(grading_id, position, (), "position")
    listed = store.browse.around(grading_id, position, _FAILING if terms is None else terms, sort)
    return Neighbours(planned.before, planned.after, listed)


_LONGEST = 200
"""Characters of words that are looked for."""

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/runs/{run}/samples/{sample:path}")
def conversation(
    request: Request,
    run: str,
    sample: str,
    trial: TrialNumber | None = None,
    target: str | None = None,
    grading: str | None = None,
    first: FirstTurn = 1,
    raw: bool = False,
    named: Annotated[str | None, Query(alias="id")] = None,
) -> Response:
    """Show one conversation; turns are shown from `from`, `raw` is as they were written.

    `id` is for an id that cannot be part of a path; `filter` and `sort` are those of the list it was chosen from,
    and `find` are words of which the turns are listed.
    """
    listed = _Listed(request.query_params.get("filter", "").strip(), request.query_params.get("sort") or None)
    store = store_of(request)
    stored_run = store.run(run)
    scores = store.grading(stored_run.id, grading)
    sample, in_name = store.named_conversation(stored_run.id, sample if named is None else named)
    held = in_name if trial is None else to_index(trial)
    outcomes = list(store.outcomes(scores.id, sample_id=sample))
    chosen = [
        outcome
        for outcome in outcomes
        if held in (None, outcome.attempt.key.trial) and target in (None, outcome.attempt.key.target)
    ]
    if not chosen:
        raise no_conversation(stored_run.id, sample, target, trial, (outcome.attempt.key for outcome in outcomes))
    view = _View(
        store,
        stored_run,
        scores,
        grading is not None,
        listed,
        raw,
        request.query_params.get("find", "").strip()[:_LONGEST],
    )
    values = _values(view, chosen[0], outcomes, to_index(first))
    people = {
        "form_key": form_key(request) if user_of(request).may("write") else None,
        "plugin_parts": list(
            answers_of(PagePart, "conversation_page_parts", request=request, run=stored_run, outcome=chosen[0])
        ),
        "commenting": comment_section(request, stored_run, chosen[0], cast("Place", values["place_of"])),
    }
    sections = list(
        answers_of(PageSection, "conversation_page_sections", store=store, run=stored_run, key=chosen[0].attempt.key)
    )
    return page("conversation.html", {**values, **people, "sections": sections})


@dataclass(frozen=True, slots=True)
class _Listed:
    """The list that a conversation was chosen from: its filter and its order; with neither, it is that of failures."""

    filter_text: str
    sort: str | None

    @property
    def query(self) -> dict[str, str | None]:
        """The parameters of an address that keep it."""
        return {"filter": self.filter_text or None, "sort": self.sort}

    def around(self, view: _View, position: int) -> Neighbours:
        """Return the neighbours of a conversation.

        Raises:
            UsageError: the filter cannot be read, or names a grader that does not exist.
        """
        if not self.filter_text and self.sort is None:
            return neighbours(view.store, view.grading.id, position)
        terms, sort = parse_filter(self.filter_text), self.sort or "worst"
        check_graders(view.grading, terms, sort)
        return neighbours(view.store, view.grading.id, position, terms, sort)


@dataclass(frozen=True, slots=True)
class _View:
    """The request; `named` means that the address names the set of scores, `raw` that messages are as written."""

    store: Store
    run: Run
    grading: Grading
    named: bool
    listed: _Listed
    raw: bool = False
    find: str = ""

    def chosen(self, key: AttemptKey) -> dict[str, str | None]:
        """Return the parameters of an address besides the sample and the trial."""
        return {"target": key.target, "grading": self.grading.id if self.named else None}

    def link(self, entry: Outcome | SampleEntry | None, turn: int | None = None) -> str | None:
        """Return the address of a conversation of the run, or of its part that begins with a turn."""
        if entry is None:
            return None
        key = entry.attempt.key if isinstance(entry, Outcome) else entry
        attempt_key = AttemptKey(key.sample_id, key.target, key.trial)
        target, grading = self.chosen(attempt_key).values()
        words, order = self.listed.query.values()
        return sample_page(
            self.run.id,
            key.sample_id,
            trial=key.trial,
            turn=turn,
            target=target,
            grading=grading,
            raw=1 if self.raw else None,
            filter=words,
            sort=order,
        )


def _values(view: _View, outcome: Outcome, siblings: Sequence[Outcome], first: int) -> dict[str, object]:
    attempt = outcome.attempt
    around = view.listed.around(view, attempt.position)
    chosen = view.grading.id if view.named else None
    return {
        **shown(
            outcome,
            lambda turn: view.link(outcome, turn),
            first,
            showing=showing(view.run.id, attempt.key, raw=view.raw, grading=chosen),
            find=view.find,
        ),
        "other_look": replace(view, raw=not view.raw).link(outcome, first or None),
        "section": "runs",
        "run": view.run,
        "kept": [
            (name, value)
            for name, value in (
                ("id", attempt.key.sample_id),
                ("trial", to_number(attempt.key.trial)),
                *view.chosen(attempt.key).items(),
                ("raw", 1 if view.raw else None),
                *view.listed.query.items(),
            )
            if value is not None
        ],
        "json_link": sample_data(view.run.id, attempt.key.sample_id, attempt.key.trial, **view.chosen(attempt.key)),
        "run_link": run_page(view.run.id, grading=chosen),
        "list_link": run_page(view.run.id, grading=chosen, **view.listed.query),
        "is_listed": bool(view.listed.filter_text or view.listed.sort),
        "around": around.listed,
        "grading": view.grading,
        "here": view.link(outcome),
        "links": {
            "prev": (view.link(around.before), around.before),
            "next": (view.link(around.after), around.after),
            "prev_listed": (view.link(around.listed.before), around.listed.before),
            "next_listed": (view.link(around.listed.after), around.listed.after),
        },
        "trials": [(sibling.attempt.key, view.link(sibling)) for sibling in siblings] if len(siblings) > 1 else [],
    }
