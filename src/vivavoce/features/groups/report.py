"""The conversations of a graded run in groups, and which groups differ from the others, for every report."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from vivavoce.comparing.thresholds import share_text
from vivavoce.features.groups.counting import Group, count_groups
from vivavoce.records.details import dollars
from vivavoce.records.run import Grading
from vivavoce.report.details import uneven_note
from vivavoce.report.text import count, join_phrases
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

HEADS = ("conversations", "passed", "95% interval", "against the others", "errors", "cost")
"""What is said of each group, next to its name."""

_MAX_NAMED = 5
_RATES = ("pass_rate", "raw_pass_rate", "highest_pass_rate", "low", "high", "rest")


class Grouped(BaseModel):
    """The groups of a graded run by `by`, and the `finding`: which of them differ from the others, as one sentence.

    Passes are those of `grader`; None means that a conversation counts by the worst of its scores. `pairs` is the field
    that variants of one case share, None where samples are not paired.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    grading: str
    by: str
    grader: str | None = None
    pairs: str | None = None
    finding: str
    groups: list[Group]


def group_conversations(
    store: Store,
    grading: Grading,
    by: str,
    filter_text: str = "",
    *,
    grader: str | None = None,
    pairs: str | None = None,
) -> Grouped:
    """Return the conversations of a grading that match a filter, in groups; see `vivavoce.features.groups.counting`.

    They have no rates where conversations were drawn with unequal probabilities: what was judged is not a picture of
    all.

    Raises:
        UsageError: there is no such grader or field, or the filter cannot be read.
    """
    groups = count_groups(store, grading.id, by, filter_text, grader=grader, pairs=pairs)
    if uneven := uneven_note(store.run(grading.run_id)):
        groups = [group.model_copy(update=dict.fromkeys(_RATES)) for group in groups]
    return Grouped(
        run=grading.run_id,
        grading=grading.id,
        by=by,
        grader=grader,
        pairs=pairs,
        finding=f"{uneven}, so no shares of groups are shown" if uneven else _finding(groups),
        groups=groups,
    )


def tag_finding(store: Store, grading: Grading) -> list[str]:
    """Return the sentence that says which tags of a graded run differ from the others."""
    return [group_conversations(store, grading, "tag").finding]


def _finding(groups: Sequence[Group]) -> str:
    if not groups:
        return "no conversation is in a group"
    if len(groups) == 1 and groups[0].rest is None:
        return "there is no other group to compare with"
    if all(group.rest is None for group in groups):
        return "too few to compare: a group and the others need two samples each with a score"
    apart = [group for group in groups if group.rest is not None and group.rest.differs]
    tested = [group.rest for group in groups if group.rest is not None]
    alone = any(not rest.differs and not rest.low <= 0 <= rest.high for rest in tested)
    note = f"; each interval is for its group alone, among {len(tested)} compared" * alone
    if not apart:
        return f"no group differs from the others beyond chance{note}"
    apart.sort(key=lambda group: -abs(group.rest.difference if group.rest is not None else 0))
    differ = f"{count(len(apart), 'group')} {'differs' if len(apart) == 1 else 'differ'}"
    others = "each other" if len(apart) == len(groups) == 2 else "the others"
    groups_apart = join_phrases([_name_and_rates(group) for group in apart], _MAX_NAMED)
    return f"{differ} from {others} beyond chance: {groups_apart}{note}"


def _name_and_rates(group: Group) -> str:
    assert group.rest is not None
    assert group.pass_rate is not None
    others = group.pass_rate - group.rest.difference
    return f"{safe(group.name)} ({_percent(group.pass_rate)} pass, others {_percent(others)}: {against(group)})"


def against(group: Group) -> str:
    """Return the difference from the others with its interval, in percent; a dash where it is unknown."""
    rest = group.rest
    if rest is None:
        return "–"
    return f"{_format_signed(rest.difference)} [{_format_signed(rest.low)}, {_format_signed(rest.high)}]"


def cells(group: Group) -> list[str]:
    """Return what is said of a group, in the order of `HEADS`."""
    interval = "–" if group.low is None or group.high is None else f"{_percent(group.low)} to {_percent(group.high)}"
    return [
        f"{group.number:,}",
        "–" if group.pass_rate is None else _percent(group.pass_rate),
        interval,
        against(group),
        f"{group.errors:,}" + (f", {group.tester_errors:,} of the tester" if group.tester_errors else ""),
        "–" if group.cost is None else dollars(group.cost),
    ]


def _percent(share: float) -> str:
    return share_text(share)


def _format_signed(share: float) -> str:
    return f"{share:+.1%}".replace("-", "−")
