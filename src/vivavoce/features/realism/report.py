"""What a comparison of simulated and real users shows, in the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from vivavoce.features.realism.change import Change, FeatureChange
from vivavoce.features.realism.differences import FeatureDifference
from vivavoce.features.realism.kinds import Kind
from vivavoce.features.realism.realism import Realism, Side
from vivavoce.features.realism.unlike import Unlike
from vivavoce.features.realism.wording import (
    apart_in_words,
    difference_in_words,
    pairs_in_words,
    value_in_words,
    with_interval,
)
from vivavoce.report.markdown import code, table
from vivavoce.report.text import Labelled, count, figures_table
from vivavoce.safe_text import safe

HEADS = ("feature", "simulated", "real, 95% interval", "difference, 95% interval", "simulated has more", "differs")
"""What is said of each feature; `simulated has more`: in which part of all pairs."""
CHANGE_HEADS = ("feature", "earlier", "later", "real", "the later run is")

_DIRECTIONS = {"closer": "closer", "farther": "farther", "past": "closer, but overshot"}


def feature_cells(difference: FeatureDifference) -> list[str]:
    """Return what is said of a feature, in the order of `HEADS`."""
    return [
        difference.name,
        value_in_words(difference.simulated.mean, difference.unit),
        with_interval(difference.real, difference.unit),
        difference_in_words(difference),
        pairs_in_words(difference),
        "yes" if difference.differs else "–" if difference.p_value is None else "no",
    ]


def change_cells(change: FeatureChange) -> list[str]:
    """Return what is said of a feature that moved, in the order of `CHANGE_HEADS`."""
    values = [value_in_words(value, change.unit) for value in (change.earlier, change.later, change.real)]
    return [change.name, *values, _DIRECTIONS[change.direction]]


def side_line(what: str, side: Side) -> str:
    """Return what one side is."""
    languages = ", ".join(f"{name} {number:,}" for name, number in side.languages.items())
    return f"{what}: {safe(side.name)}, {count(side.conversations, 'conversation')} ({languages})"


def sides(realism: Realism) -> Iterator[str]:
    """Yield what both sides are."""
    yield side_line("simulated", realism.simulated)
    yield side_line("real, held-out half" if realism.held_back else "real", realism.real)


def apart_lines(realism: Realism) -> Iterator[str]:
    """Yield what the classifiers can do."""
    yield from map(apart_in_words, realism.apart)


def kind_line(kind: Kind) -> str:
    """Return what a kind of real user is, and how many simulated ones are of it."""
    interval = "" if kind.simulated_low is None else f" [{kind.simulated_low:.0%}, {kind.simulated_high:.0%}]"
    rarer = (
        "" if not kind.rarer else "; no simulated user is like them" if kind.simulated == 0 else "; too few simulated"
    )
    return f"{kind.real:.0%} of real users, {kind.simulated:.0%}{interval} of simulated ones{rarer}"


def change_lines(change: Change) -> Iterator[str]:
    """Yield what came closer since an earlier run."""
    farther = len([feature for feature in change.features if feature.direction == "farther"])
    closer = count(len(change.features) - farther, "feature")
    yield f"since {safe(change.earlier)} {closer} came closer to real users, {farther:,} moved away"
    if change.after.features is not None and change.before.features is not None:
        features = [_pairs(each.features, each.low, each.high) for each in (change.after, change.before)]
        more = f"one side has more in {features[0]} (before: {features[1]}); 50% means no difference"
        yield f"average over features: {more}"
    after, before = change.after.classifier, change.before.classifier
    if after.right is None or before.right is None:
        yield f"classifier: no result: {after.note or before.note}"
        return
    results = [_pairs(each.right, each.low, each.high) for each in (after, before)]
    yield f"the classifier picks the simulated one in {results[0]} (before: {results[1]})"


def _pairs(value: float | None, low: float | None, high: float | None) -> str:
    interval = "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"
    return f"{value:.0%} of pairs{interval}"


MAX_CONVERSATIONS = 3
"""Conversations that are shown of each side."""

_RANKS = (0, 0, 0, 3, 2, 4)
"""Which columns a narrow terminal drops first: those with the highest number."""


def blocks(realism: Realism, limit: int) -> Iterator[RenderableType]:
    """Yield what is printed, with at most `limit` features."""
    yield Text(realism.finding, style="bold")
    yield Text()
    for line in (*sides(realism), *apart_lines(realism)):
        yield Text(line)
    if realism.change is not None:
        yield from (Text(line) for line in change_lines(realism.change))
        if realism.change.features:
            yield Text()
            yield figures_table(CHANGE_HEADS, [change_cells(feature) for feature in realism.change.features])
    yield Text()
    yield figures_table(HEADS, [feature_cells(feature) for feature in realism.features[:limit]], _RANKS)
    if (more := len(realism.features) - limit) > 0:
        yield Text(f"and {count(more, 'more feature')}; --limit shows more", style="dim")
    yield from _unlike("simulated conversations that are least like real ones", realism.least_likely)
    yield from _unlike("real conversations that are least like simulated ones", realism.least_resembled)
    yield from _kinds(realism.kinds)
    if realism.notes:
        yield Text()
    for note in realism.notes:
        yield Labelled(Text("note: "), Text(safe(note)))


def _unlike(title: str, conversations: Sequence[Unlike]) -> Iterator[RenderableType]:
    if not conversations:
        return
    yield Text()
    yield Text(title, style="bold")
    for conversation in conversations[:MAX_CONVERSATIONS]:
        yield Labelled(Text("  "), Text(f"{safe(conversation.name)}  “{safe(conversation.says)}”"))
        for reason in conversation.reasons:
            yield Labelled(Text("    "), Text(reason))
        if conversation.command is not None:
            yield Text(f"    {conversation.command}", style="dim")


def _kinds(kinds: Sequence[Kind]) -> Iterator[RenderableType]:
    if not kinds:
        return
    yield Text()
    yield Text("kinds of real users", style="bold")
    for kind in kinds:
        yield Labelled(Text(f"  {kind.number}  "), Text(kind_line(kind)))
        yield Labelled(Text("     "), Text("; ".join(kind.marks) or "like the others in all features"))
        yield Labelled(Text("     "), Text(f"such as {safe(kind.example)}: “{safe(kind.says)}”", style="dim"))


MAX_CHARS = 400
"""Characters of a line in a code span, at most."""


def markdown_realism(realism: Realism) -> str:
    """Return what realism says as Markdown; an empty line ends it, so that more can follow."""
    return "\n".join([*_markdown_lines(realism), ""])


def _markdown_lines(realism: Realism) -> Iterator[str]:
    yield from (f"**{code(realism.finding, MAX_CHARS)}**", "")
    yield from (f"- {code(line, MAX_CHARS)}" for line in sides(realism))
    yield from (f"- {line}" for line in apart_lines(realism))
    if realism.change is not None:
        yield from (f"- {code(line, MAX_CHARS)}" for line in change_lines(realism.change))
        if realism.change.features:
            yield ""
            yield from table(
                list(CHANGE_HEADS), "lrrrl", (change_cells(feature) for feature in realism.change.features)
            )
    yield ""
    yield from table(list(HEADS), "lrrrrl", (feature_cells(feature) for feature in realism.features))
    yield from _markdown_unlike("Simulated conversations that are least like real ones", realism.least_likely)
    yield from _markdown_unlike("Real conversations that are least like simulated ones", realism.least_resembled)
    if realism.kinds:
        yield from ("", "Kinds of real users", "")
        for kind in realism.kinds:
            yield f"{kind.number}. {kind_line(kind)}: {'; '.join(kind.marks)}; such as {code(kind.example)}"
    if realism.notes:
        yield ""
    yield from (f"- {code(note, MAX_CHARS)}" for note in realism.notes)


def _markdown_unlike(title: str, conversations: Sequence[Unlike]) -> Iterator[str]:
    if conversations:
        yield from ("", title, "")
    for conversation in conversations:
        yield f"- {code(conversation.name)}: {code(conversation.says)}: {'; '.join(conversation.reasons)}"
