from __future__ import annotations

from report.cases import BROKEN_JUDGE
from vivavoce.features.labels.agreement import agreement_lines, figures, items
from vivavoce.records.score import FindingState, Score, Usage, failed, skipped

from .cases import labelled_outcome, rate_outcomes, sure


def test_the_tables_say_what_was_compared_and_what_was_not() -> None:
    own: list[dict[str, FindingState]] = [{"a|b": "fail"}, {"a|b": "pass"}]
    rows = [labelled_outcome(str(at), sure(at % 2, 0.9, **own[at % 2]), at % 4 < 2) for at in range(12)]
    more = [
        labelled_outcome("x", failed(BROKEN_JUDGE), True),
        labelled_outcome("y", skipped("none"), True),
        labelled_outcome("z", 1.0, None),
    ]
    used = labelled_outcome("u", Score(value=1.0, usage=Usage(calls=1, input_tokens=1200, output_tokens=34)), None)
    rated_cases = rate_outcomes(*rows, *more, used)
    lines = list(agreement_lines(rated_cases, figures(rated_cases), items(rated_cases)))
    assert lines[0] == (
        "**`judge` compared with `labels.good`**: 12 conversations compared; 1 error (1 `format`); 1 skipped; "
        "2 without this label; 1,200 input and 34 output tokens"
    )
    assert lines[2:5] == [
        "| measure | n | value | 95% interval | one rater | length |",
        "|---|---:|---:|---:|---:|---:|",
        "| accuracy | 12 | 0.500 | 0.254 … 0.746 | – | – |",
    ]
    assert lines[9:12] == [
        "| item | n | holds | partly | fails | AUROC | 95% interval |",
        "|---|---:|---:|---:|---:|---:|---:|",
        lines[11],
    ]
    assert lines[11].startswith("| `a∣b` | 12 | 6 | 0 | 6 | 0.500 |")


def test_without_items_there_is_one_table() -> None:
    rated_cases = rate_outcomes(labelled_outcome("a", 1.0, label=True), labelled_outcome("b", 0.0, label=False))
    lines = list(agreement_lines(rated_cases, figures(rated_cases), items(rated_cases)))
    assert sum(line.startswith("|---") for line in lines) == 1
