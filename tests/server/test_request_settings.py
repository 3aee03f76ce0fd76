"""Settings of a judge in requests: each has a type and a range, tried at its ends and just beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.server.request_settings import SETTINGS, CountSetting, NumberSetting, WordSetting, check_setting
from vivavoce.server.requested_metrics import RequestedMetric

NEVER: list[Any] = [
    True,
    False,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    "x" * 100_000,
    ["x"] * 100_000,
    [1],
    [],
    {},
    [[]],
    "",
]
"""Values of no setting."""


def ends(name: str) -> tuple[list[Any], list[Any]]:
    """Return values of a setting at the ends of its range, and those just beyond."""
    setting = SETTINGS[name]
    if isinstance(setting, NumberSetting):
        return [setting.least, setting.most], [setting.least - 0.01, setting.most + 0.01, str(setting.most)]
    if isinstance(setting, CountSetting):
        return [setting.least, setting.most], [setting.least - 1, setting.most + 1, setting.least + 0.5, "1"]
    if isinstance(setting, WordSetting):
        return list(setting.words), [setting.words[0].upper(), "unknown", 1, [setting.words[0]]]
    text, long = "x" * setting.max_chars, "x" * (setting.max_chars + 1)
    return [text, [text] * setting.most], [long, [long], [text] * (setting.most + 1), 1]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_has_a_type_and_a_range(name: str) -> None:
    allowed, refused = ends(name)
    for value in (*allowed, None):
        check_setting(name, value)
        assert RequestedMetric(metric="safety", settings={name: value}).settings == {name: value}
    for value in (*refused, *NEVER):
        with pytest.raises(ValueError, match=f"'{name}' needs ") as caught:
            check_setting(name, value)
        assert len(str(caught.value)) < 250
        with pytest.raises(ValidationError, match=f"'{name}' needs "):
            RequestedMetric(metric="safety", settings={name: value})


@pytest.mark.parametrize("value", [*ends("temperature")[1], *NEVER])
def test_the_temperature_beside_the_settings_is_the_same_one(value: Any) -> None:
    with pytest.raises(ValidationError, match="'temperature' needs "):
        RequestedMetric(metric="safety", temperature=value)


@given(
    st.sampled_from(sorted(SETTINGS)),
    st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.lists(st.text())),
)
def test_any_value_is_allowed_or_refused_in_one_line(name: str, value: Any) -> None:
    if not SETTINGS[name].allows(value):
        with pytest.raises(ValueError, match=" needs ") as caught:
            check_setting(name, value)
        assert str(caught.value).startswith(f"'{name}' needs {SETTINGS[name].expected}, got ")
