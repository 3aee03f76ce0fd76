"""What people say of a run: a title, notes and tags, which may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.safe_text import safe

LONGEST_TITLE = 200
LONGEST_NOTES = 10_000
LONGEST_TAG = 60
MOST_TAGS = 20


def _one_line(text: str) -> str:
    return " ".join(safe(text).split())


def _tags(tags: list[str]) -> list[str]:
    return [one for one in dict.fromkeys(tags) if one]


Tag = Annotated[str, Field(max_length=LONGEST_TAG), AfterValidator(_one_line)]


class Remarks(BaseModel):
    """Remarks on a run, or a change of them: what is not set stays as it is, an empty text removes what was there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Annotated[str, Field(max_length=LONGEST_TITLE), AfterValidator(_one_line)] | None = None
    notes: Annotated[str, Field(max_length=LONGEST_NOTES), AfterValidator(str.strip)] | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(_tags)] | None = None


def remarks_of(given: Mapping[str, object]) -> Remarks:
    """Return what somebody typed as remarks.

    Raises:
        UsageError: a text is too long, or there are too many tags.
    """
    try:
        return Remarks.model_validate(given)
    except ValidationError as error:
        raise UsageError(*(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())) from error
