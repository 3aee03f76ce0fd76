"""The agreement of a grader with the labels of a dataset, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vivavoce.report.label_agreement import Figure, Item, Rated
from vivavoce.report.markdown import code, interval, number, table
from vivavoce.report.text import count


def agreement_lines(found: Rated, figures: Sequence[Figure], items: Sequence[Item]) -> Iterator[str]:
    """Yield what was compared, a table of the measures, and one of the items of the judge's list."""
    yield f"**{code(found.grader)} beside {code(f'labels.{found.label}')}**: {_counted(found)}"
    yield ""
    heads = ["measure", "n", "value", "95% interval", "one rater", "length"]
    yield from table(heads, "lrrrrr", map(_figure, figures))
    if items:
        yield ""
        heads = ["item", "n", "holds", "partly", "fails", items[0].agreement.name, "95% interval"]
        yield from table(heads, "lrrrrrr", map(_item, items))
    yield ""


def _counted(found: Rated) -> str:
    parts = [f"{count(len(found.cases), 'conversation')} compared"]
    if found.errors:
        kinds = ", ".join(f"{times} {code(kind)}" for kind, times in found.errors.most_common())
        parts.append(f"{count(found.errors.total(), 'error')} ({kinds})")
    if found.skipped:
        parts.append(f"{found.skipped} skipped")
    if found.unlabelled:
        parts.append(f"{found.unlabelled} without this label")
    if found.usage.calls:
        usage = found.usage
        parts.append(f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens")
    return "; ".join(parts)


def _figure(one: Figure) -> list[str]:
    shown = [number(one.value), interval(one.low, one.high), number(one.rater), number(one.length)]
    return [one.name, f"{one.n:,}", *shown]


def _item(one: Item) -> list[str]:
    figure = one.agreement
    counts = [f"{value:,}" for value in (figure.n, one.held, one.partly, one.failed)]
    return [code(one.name), *counts, number(figure.value), interval(figure.low, figure.high)]
