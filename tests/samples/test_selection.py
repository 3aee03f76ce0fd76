from __future__ import annotations

from vivavoce.samples.rows import Selection, exactly

IDS = ["total-1", "total-2", "tax", "odd[1]", "odd1"]


def select(*names: str) -> list[str]:
    selection = Selection.of(names)
    return [name for name in IDS if name in selection]


def test_names_are_ids_or_patterns() -> None:
    assert select("tax") == ["tax"]
    assert select("total-*", "tax") == ["total-1", "total-2", "tax"]
    assert select("total-?") == select("total-[12]") == ["total-1", "total-2"]


def test_an_id_that_looks_like_a_pattern_is_still_an_id() -> None:
    assert select("odd[1]") == ["odd[1]", "odd1"]
    assert select(*exactly(["odd[1]"])) == ["odd[1]"]
    assert select(*exactly(IDS)) == IDS


def test_names_that_fit_nothing_are_missing() -> None:
    assert Selection.of(["tax", "toll", "t*", "x*", "odd[1]"]).missing(IDS) == ["toll", "x*"]
