"""How far graders agree with labels, and people with each other: measures, and what reports say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from vivavoce.records.label import DifferingLabels, Label, LabelAgreement, PeopleAgreement
from vivavoce.records.score import FindingState
from vivavoce.report.label_agreement import Case, Rated, place_text
from vivavoce.report.markdown import code, interval, number, table
from vivavoce.report.text import count
from vivavoce.safe_text import safe
from vivavoce.stats.agreement import Agreement, agreement
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.ranking import auroc, auroc_interval, spearman, spearmans
from vivavoce.stats.raters import Ratings, kappa_interval
from vivavoce.stats.resampling import Floats, bootstrap

MIN_CONVERSATIONS = 10
"""An item that fewer conversations have is not compared: what a judge lists itself differs from one to the next."""
_WORTH: dict[FindingState, float] = {"pass": 1.0, "partial": 0.5, "fail": 0.0}
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of agreement over `n` conversations, with its 95% interval; None where it cannot be computed.

    `rater` is the same for one rater next to the others, `length` for the length of the last reply.
    """

    name: str
    n: int
    value: float | None
    low: float | None = None
    high: float | None = None
    rater: float | None = None
    length: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """How often an item of a judge's list held, and how far that alone agrees with the label."""

    name: str
    held: int
    partly: int
    failed: int
    agreement: Figure


def figures(rated_cases: Rated, good_from: float | None = None) -> list[Figure]:
    """Return the measures that the label allows.

    A yes or no, or a number with `good_from`, the least of a good conversation: accuracy, Cohen's kappa and the area
    under the ROC curve by score and confidence, and, where the judge says how sure it is, the mean squared error of
    that (Brier score, 0 best, 0.25 for a coin). Numbers: Spearman's correlation with the mean rating.
    """
    decided = [
        (case, case.passed, good)
        for case in rated_cases.cases
        if case.passed is not None and (good := case.ratings.good(good_from)) is not None
    ]
    found_figures: list[Figure] = []
    if decided:
        passed, good = _bools([passed for _, passed, _ in decided]), _bools([good for _, _, good in decided])
        tables = _by_rater(rated_cases.cases, good_from)
        found_figures += _of_verdicts([case for case, _, _ in decided], passed, good, tables)
    numbers = [case for case in rated_cases.cases if not case.ratings.boolean]
    if numbers:
        found_figures.append(_spearman(numbers))
    return found_figures


def items(rated_cases: Rated, good_from: float | None = None) -> list[Item]:
    """Return how far each item of the judge's list agrees with the label by itself, as `figures` would say."""
    seen: dict[str, list[tuple[Case, float]]] = {}
    for case in rated_cases.cases:
        worth: dict[str, list[float]] = {}
        for finding in case.findings:
            if finding.state in _WORTH:
                worth.setdefault(str(finding.data.get("item", finding.what)), []).append(_WORTH[finding.state])
        for name, values in worth.items():
            seen.setdefault(name, []).append((case, fsum(values) / len(values)))
    return [_item(name, pairs, good_from) for name, pairs in seen.items() if len(pairs) >= MIN_CONVERSATIONS]


def _of_verdicts(cases: Sequence[Case], passed: Bools, good: Bools, tables: Sequence[Agreement]) -> list[Figure]:
    clusters = [case.sample_id for case in cases]
    right = [float(is_right) for is_right in passed == good]
    low, high = kappa_interval(passed, good, clusters) or (None, None)
    kappa_of_rater = _average([table.kappa for table in tables])
    return [
        _mean("accuracy", right, clusters, _average([table.accuracy for table in tables])),
        Figure("κ", len(cases), _table(passed, good).kappa, low, high, kappa_of_rater),
        _auroc(_orders(cases), cases, good),
        *_calibration(cases, right),
    ]


def _calibration(cases: Sequence[Case], right: Sequence[float]) -> list[Figure]:
    sure = [(case.sample_id, case.confidence, hit) for case, hit in zip(cases, right, strict=True)]
    errors = [(name, (confidence - hit) ** 2) for name, confidence, hit in sure if confidence is not None]
    return [_mean("Brier score", [error for _, error in errors], [name for name, _ in errors])] if errors else []


def _mean(name: str, values: Sequence[float], clusters: Sequence[str], rater: float | None = None) -> Figure:
    estimate = mean_interval(values, clusters)
    assert estimate is not None
    return Figure(name, estimate.n, estimate.mean, estimate.low, estimate.high, rater)


def _auroc(values: Floats, cases: Sequence[Case], good: Bools) -> Figure:
    low, high = auroc_interval(values, good, [case.sample_id for case in cases]) or (None, None)
    return Figure("AUROC", len(cases), auroc(values, good), low, high, length=auroc(_lengths(cases), good))


def _spearman(cases: Sequence[Case], values: Floats | None = None) -> Figure:
    scores = _floats([case.order[0] for case in cases]) if values is None else values
    ratings = _floats([case.ratings.mean for case in cases])
    clusters = [case.sample_id for case in cases]
    low, high = bootstrap(lambda weights: spearmans(scores, ratings, weights), clusters) or (None, None)
    beside = [
        spearman([rater.mean for rater, _ in pairs], [others.mean for _, others in pairs]) for pairs in _raters(cases)
    ]
    length = spearman(_lengths(cases), ratings)
    return Figure("Spearman", len(cases), spearman(scores, ratings), low, high, _average(beside), length)


def _item(name: str, pairs: Sequence[tuple[Case, float]], good_from: float | None) -> Item:
    holds, failed = (sum(worth == end for _, worth in pairs) for end in (1.0, 0.0))
    truths = [(case, worth, case.ratings.good(good_from)) for case, worth in pairs]
    if all(case.ratings.boolean for case, _ in pairs) or good_from is not None:
        decided = [(case, worth, good) for case, worth, good in truths if good is not None]
        cases, values = [case for case, _, _ in decided], _floats([worth for _, worth, _ in decided])
        measure = _auroc(values, cases, _bools([good for _, _, good in decided]))
    else:
        measure = _spearman([case for case, _ in pairs], _floats([worth for _, worth in pairs]))
    return Item(name, holds, len(pairs) - holds - failed, failed, measure)


def _raters(cases: Sequence[Case]) -> list[list[tuple[Ratings, Ratings]]]:
    """Return for each place in the lists of raters what that rater and what the others said, case by case."""
    most = max(len(case.ratings.values) for case in cases)
    return [[pair for case in cases if (pair := case.ratings.without(rater))] for rater in range(most)]


def _by_rater(cases: Sequence[Case], good_from: float | None) -> list[Agreement]:
    """Return for each rater how often the verdict is that of the others."""
    tables: list[Agreement] = []
    for pairs in _raters(cases):
        verdicts = [(rater.good(good_from), others.good(good_from)) for rater, others in pairs]
        decided = [(rater, others) for rater, others in verdicts if rater is not None and others is not None]
        tables.append(agreement([verdict for verdict, _ in decided], [others for _, others in decided]))
    return tables


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _table(passed: Bools, good: Bools) -> Agreement:
    tp, fp, fn = int((passed & good).sum()), int((passed & ~good).sum()), int((~passed & good).sum())
    return Agreement(tp=tp, fp=fp, fn=fn, tn=len(passed) - tp - fp - fn)


def _orders(cases: Sequence[Case]) -> Floats:
    """Return numbers in the order of the scores and, where they are equal, of how sure the judge is."""
    places = {order: place for place, order in enumerate(sorted({case.order for case in cases}))}
    return _floats([places[case.order] for case in cases])


def _lengths(cases: Sequence[Case]) -> Floats:
    return _floats([case.length for case in cases])


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _bools(values: Sequence[bool]) -> Bools:
    return np.array(values, dtype=np.bool_)


def agreement_lines(rated_cases: Rated, figures: Sequence[Figure], items: Sequence[Item]) -> Iterator[str]:
    """Yield what was compared, a table of the measures, and one of the items of the judge's list."""
    label = code(f"labels.{rated_cases.label}")
    yield f"**{code(rated_cases.grader)} compared with {label}**: {_count_rated(rated_cases)}"
    yield ""
    heads = ["measure", "n", "value", "95% interval", "one rater", "length"]
    yield from table(heads, "lrrrrr", map(_figure_row, figures))
    if items:
        yield ""
        heads = ["item", "n", "holds", "partly", "fails", items[0].agreement.name, "95% interval"]
        yield from table(heads, "lrrrrrr", map(_item_row, items))
    yield ""


def _count_rated(rated_cases: Rated) -> str:
    parts = [f"{count(len(rated_cases.cases), 'conversation')} compared"]
    if rated_cases.errors:
        kinds = ", ".join(f"{times} {code(kind)}" for kind, times in rated_cases.errors.most_common())
        parts.append(f"{count(rated_cases.errors.total(), 'error')} ({kinds})")
    if rated_cases.skipped:
        parts.append(f"{rated_cases.skipped} skipped")
    if rated_cases.unlabelled:
        parts.append(f"{rated_cases.unlabelled} without this label")
    if rated_cases.usage.calls:
        usage = rated_cases.usage
        parts.append(f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens")
    return "; ".join(parts)


def _figure_row(figure: Figure) -> list[str]:
    cells = [number(figure.value), interval(figure.low, figure.high), number(figure.rater), number(figure.length)]
    return [figure.name, f"{figure.n:,}", *cells]


def _item_row(item: Item) -> list[str]:
    figure = item.agreement
    counts = [f"{value:,}" for value in (figure.n, item.held, item.partly, item.failed)]
    return [code(item.name), *counts, number(figure.value), interval(figure.low, figure.high)]


def people_markdown(agreement: PeopleAgreement | None) -> Iterator[str]:
    """Yield how far people agree as Markdown: a table of the figures, and one of the places where they do not."""
    if agreement is None:
        yield "No conversation or turn has labels of two people."
        return
    yield f"**{len(agreement.people)} people**: {', '.join(map(code, agreement.people))}"
    yield ""
    name = "Cohen's κ" if len(agreement.people) == 2 else "Fleiss' κ"
    share = [f"same label, of {agreement.n:,}", f"{agreement.same:,}", ""]
    alpha = ["Krippendorff's α", number(agreement.alpha), interval(agreement.low, agreement.high)]
    yield from table(["measure", "value", "95% interval"], "lrr", [share, alpha, [name, number(agreement.kappa), ""]])
    if agreement.disputed:
        yield ""
        rows = [
            [code(place_text(place)), *(place.verdicts.get(person, "") for person in agreement.people)]
            for place in agreement.disputed
        ]
        yield from table(["place", *map(code, agreement.people)], "l" + "l" * len(agreement.people), rows)


def differing_line(differing_labels: DifferingLabels) -> str:
    """Return a place where labels differ, with what each person says and what was decided."""
    verdicts = ", ".join(f"{label.author} says {label.verdict}" for label in differing_labels.labels)
    decided = (
        "not decided"
        if differing_labels.decision is None
        else f"{differing_labels.decision.author} decided {differing_labels.decision.verdict}"
    )
    question = f"  {differing_labels.grader}" if differing_labels.grader else ""
    return safe(f"{place_text(differing_labels)}{question}  {verdicts}  {decided}")


def labels_line(grader: str, labels: Sequence[Label], agreement: LabelAgreement) -> str:
    """Return in one line how many labels of a grader people gave, how far they agree, and how far the judge does."""
    people = {label.author for label in labels}
    labellers = f"{count(len(labels), 'label')} by {len(people)} {'person' if len(people) == 1 else 'people'}"
    parts = [f"{safe(grader)}: {labellers}" if grader else labellers]
    if (other := agreement.people) is not None:
        alpha = "" if other.alpha is None else f", α {other.alpha:.2f}{_between(other.low, other.high)}"
        parts.append(f"they agree on {other.same} of {other.n} conversations or turns with two or more labels{alpha}")
    if agreement.n:
        kappa = "" if agreement.kappa is None else f", κ {agreement.kappa:.2f}{_between(agreement.low, agreement.high)}"
        parts.append(f"the grader agrees with {agreement.both_pass + agreement.both_fail} of {agreement.n}{kappa}")
    return "; ".join(parts)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
