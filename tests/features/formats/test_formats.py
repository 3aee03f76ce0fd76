"""What all formats have in common."""

from __future__ import annotations

import pytest

from vivavoce.conversations.format import ROW_FIELDS, all_formats, format_named, names
from vivavoce.conversations.own_rows import OTHER_NAMES
from vivavoce.errors import UsageError
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
from vivavoce.samples.row import PATHS
from vivavoce.samples.sample import Sample


def test_rows_have_the_fields_of_samples() -> None:
    assert frozenset(Sample.model_fields) | {"sessions"} == ROW_FIELDS
    assert not ROW_FIELDS & set(PATHS)
    assert {*PATHS, *SingleTurnSample.model_fields, *MultiTurnSample.model_fields} - ROW_FIELDS <= OTHER_NAMES


def test_every_format_is_found_by_its_name_and_goes_at_least_one_way() -> None:
    assert [format_.name for format_ in all_formats()] == names()
    assert all(format_.read or format_.write for format_ in all_formats())
    assert len({format_.title for format_ in all_formats()}) == len(names())


def test_an_unknown_format_is_told_with_the_closest() -> None:
    with pytest.raises(UsageError, match="did you mean 'sharegpt'"):
        format_named("sharegtp")
