"""The tables of trackers: what people said is next to the score that they judged."""

from __future__ import annotations

from vivavoce.features.publish.conversation import COLUMNS, LABEL_COLUMNS, label_cells, sample_cells
from vivavoce.store.store import Store

from .server import label, new_run


async def test_labels_stand_beside_their_scores_and_in_a_table_of_their_own(store: Store) -> None:
    graded = await new_run(store)
    label(graded, "a", "ida", "pass", grader="correctness", note="friendly")
    label(graded, "a", "bo", "fail", grader="correctness")
    label(graded, "a", "bo", "unsure", turn=1)
    rows = [dict(zip(COLUMNS, cells, strict=True)) for cells in sample_cells(graded)]
    assert [(row["sample"], row["grader"], row["label"]) for row in rows] == [
        ("a", "correctness", "fail, pass"),
        ("b", "exact", None),
    ]
    label_rows = [dict(zip(LABEL_COLUMNS, cells, strict=True)) for cells in label_cells(graded)]
    assert [
        (label_row["turn"], label_row["grader"], label_row["author"], label_row["verdict"], label_row["note"])
        for label_row in label_rows
    ] == [
        (None, "correctness", "ida", "pass", "friendly"),
        (None, "correctness", "bo", "fail", None),
        (2, None, "bo", "unsure", None),
    ]
