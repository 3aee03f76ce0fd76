"""Prices of models: a dated table next to this file, and the user's own table, which takes precedence."""

from __future__ import annotations

import os
import re
from datetime import date
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.messages import describe
from vivavoce.records.score import Usage

VARIABLE = "VIVAVOCE_PRICES"
"""The environment variable that names the user's own table, a JSON file of the shape of `prices.json`."""
_OURS = Path(__file__).parent / "prices.json"
DISCOUNTED = ("openai:", "azure:", "anthropic:")
"""Providers whose batches cost half of the usual price; what they cost elsewhere the user's own table may say."""
_VERSION = re.compile(r"[-@](?:\d{4}-\d\d-\d\d|\d{8}|0\d\d|latest)$")
"""The suffix of a name that states a version of the model."""


class Price(BaseModel):
    """What a model costs, in US dollars per million tokens.

    Where a provider states no price for cached input it costs as much as other input. Writing to a cache is not
    counted. `batch` is the part of these prices that a batch costs, None where that is not stated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    batch: float | None = Field(default=None, ge=0)

    def cost(self, usage: Usage) -> float:
        """Return what tokens cost, in US dollars; cached input is a part of the input, reasoning one of the output."""
        cached = min(usage.cached_input_tokens, usage.input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - cached
        return (fresh * self.input + cached * cached_price + usage.output_tokens * self.output) / 1e6


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: date | None = None
    source: str = ""
    models: dict[str, Price]


def price_of(name: str) -> Price | None:
    """Return the price of a model, None where it is not known.

    `name` is that of the model, as in `openai:gpt-4.1-mini` or `http://localhost:8000/v1#NAME`. A name with a date or
    another version at its end has the price of its family unless it has one of its own.

    Raises:
        UsageError: the user's table cannot be read.
    """
    path = os.environ.get(VARIABLE)
    prices = _prices(Path(path).absolute() if path else None)
    return prices.get(name) or prices.get(_VERSION.sub("", name))


def batch_price(name: str) -> Price | None:
    """Return the price of a model in a batch, None where it is not known.

    Raises:
        UsageError: the user's table cannot be read.
    """
    price = price_of(name)
    if price is None:
        return None
    part = price.batch if price.batch is not None else 0.5 if name.startswith(DISCOUNTED) else None
    if part is None:
        return None
    cached = None if price.cached_input is None else price.cached_input * part
    return Price(input=price.input * part, output=price.output * part, cached_input=cached, batch=part)


@cache
def _prices(path: Path | None) -> dict[str, Price]:
    ours = _Table.model_validate_json(_OURS.read_text(encoding="utf-8")).models
    return ours if path is None else {**ours, **_user_table(path).models}


def _user_table(path: Path) -> _Table:
    try:
        return _Table.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{VARIABLE}: {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError(f"{VARIABLE}: {path} is not a table of prices: {describe(error)}") from error
