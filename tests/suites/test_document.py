"""What YAML allows either means what it says, or is one clear line."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.suites.document import read_document


def read(text: str | bytes) -> dict[str, Any]:
    path = Path("suite.yaml")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(path).data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: yes\nb: no\nc: on\n", {"a": "yes", "b": "no", "c": "on"}),
        ("a: true\nb: &x false\nc: *x\n", {"a": True, "b": False, "c": False}),
        ("a: 1e3\nb: .5\nc: 0x1F\nd: 1_000\n", {"a": 1000.0, "b": 0.5, "c": 31, "d": 1000}),
        ("a: ~\nb:\nc: null\n", {"a": None, "b": None, "c": None}),
        ("a: 2024-01-01\nb: 2024-01-01T10:00:00Z\n", {"a": "2024-01-01", "b": "2024-01-01T10:00:00Z"}),
        ("2024-01-01: a\n7: b\n", {"2024-01-01": "a", "7": "b"}),
        ("a: =\nb: !!str 5\n", {"a": "=", "b": "5"}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", {"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}),
        ("a: &x {b: 1}\nc: &y {d: 2}\ne: {<<: [*x, *y]}\n", {"a": {"b": 1}, "c": {"d": 2}, "e": {"b": 1, "d": 2}}),
        ("a: &x [1, two]\nb: *x\n", {"a": [1, "two"], "b": [1, "two"]}),
        ("a: |\n  one\n  two\nb: >-\n  one\n  two\n", {"a": "one\ntwo\n", "b": "one two"}),
        ("a: 1\r\nb:\r\n  c: 2\r\n", {"a": 1, "b": {"c": 2}}),
        ("\ufeffa: 1\n", {"a": 1}),
        ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
        ("a: “curly”\n", {"a": "“curly”"}),
    ],
)
def test_yaml_is_read_as_plain_data(text: str, data: dict[str, Any]) -> None:
    results = read(text)
    assert repr(results) == repr(data)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n\tb: 1\n", "2:1 is not YAML: found character '\\t' that cannot start any token; indent with spaces, "),
        ("a: 1\na: 2\n", '2:1 is not YAML: found duplicate key "a"'),
        ("a: {b: 1, b: sk-1}\n", '1:11 is not YAML: found duplicate key "b"'),
        ("1: a\n'1': b\n", "2:1 1: duplicate key"),
        ("a: 1\n---\na: 2\n", "2:1 is not YAML: expected a single document in the stream, but found another document"),
        ("a: b: c\n", "1:5 is not YAML: mapping values are not allowed here; check the indentation, and put a text "),
        ("op: >=\n", "1:6 is not YAML: expected chomping or indentation indicators, but found '='; put a text that "),
        ("a: @x\n", "1:4 is not YAML: found character '@' that cannot start any token; put a text that begins "),
        ("a: *x\n", "1:4 is not YAML: found undefined alias 'x'"),
        ("a: {<<: 5}\n", "1:9 is not YAML: expected a mapping or list of mappings for merging, but found scalar"),
        ("a: &x\n  <<: *x\n", "2:7 is not YAML: the alias *x refers to a value that contains it"),
        ("a: &x {<<: [{b: 1}, {<<: *x}]}\n", "1:26 is not YAML: the alias *x refers to a value that contains it"),
        ("a: &x {b: [*x]}\n", "1:12 is not YAML: the alias *x refers to a value that contains it"),
        ("a: &x !!omap [b: *x]\n", "1:18 is not YAML: the alias *x refers to a value that contains it"),
        ("a: !!int 0x\n", "1:4 is not YAML: the value does not fit its tag !!int"),
        ("a: !!float 1_e\n", "1:4 is not YAML: the value does not fit its tag !!float"),
        ("a: !!bool x\n", "1:4 is not YAML: the value does not fit its tag !!bool"),
        (
            "a: 1\nb: {{ message }}\n",
            "2:1 b: a key must be text; quote it, and quote any text that begins with {{",
        ),
        ("a: {true: 1}\n", "1:1 a: a key must be text"),
        ("a: {~: 1}\n", "1:1 a: a key must be text"),
        ("a: !!binary aGk=\n", "1:1 a: is not text, a number, a list or a mapping; remove the tag (!)"),
        (
            "a: !!python/object:os.system x\n",
            "1:1 a: is not text, a number, a list or a mapping; remove the tag (!)",
        ),
        ('a: 1\nb: "x\\ud800"\n', "2:1 b: has half a surrogate pair, which is not a character"),
        ('"\\udc00": 1\n', "1:1 \\udc00: has half a surrogate pair, which is not a character"),
        ("a: 1\nb: x\x1b\n", "2 contains an unprintable character (number 27)"),
        ("a: 1\n".encode("utf-16"), "1 is not UTF-8; save it as UTF-8"),
        (f"a: {'[' * 1000}\n", " is nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str | bytes, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    said = str(caught.value)
    assert said.startswith(f"suite.yaml:{line}")
    assert "\n" not in said
    assert "sk-1" not in said


def test_what_was_merged_in_has_the_place_of_what_it_was_merged_into() -> None:
    read("a: &x {b: 1}\nc:\n  d:\n    <<: *x\n")
    document = read_document(Path("suite.yaml"))
    assert str(document.problem(("c", "d", "b"), "is wrong")) == "suite.yaml:3:3 c.d.b: is wrong"


def test_a_number_that_begins_with_0_is_a_code(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text("{zip: 01234, agent: 007, none: 0, minus: -7, octal: 0o17, big: 1000, share: 0.5, zeros: 000}")
    assert read_document(file).data == {
        "zip": "01234",
        "agent": "007",
        "none": 0,
        "minus": -7,
        "octal": 15,
        "big": 1000,
        "share": 0.5,
        "zeros": "000",
    }


def test_a_file_is_read_no_further_than_it_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").touch()
    os.truncate(tmp_path / "huge.yaml", 2**40)
    for name in ("endless.yaml", "huge.yaml"):
        with pytest.raises(UsageError, match="is too large; a suite has at most 1,000,000 bytes"):
            read_document(tmp_path / name)


_TAGS = [
    "",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!null ",
    "!!str ",
    "!!binary ",
    "!!timestamp ",
    "!!set ",
    "!!omap ",
    "!!x ",
]
_SCALARS = ["x", "0x", "1_e", ".", "=", "*a", "*b", "08", "1:70", "0o9", "~", "'<<'"]


def _values(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = st.sampled_from(["a", "b", "<<", "? x", "*a"])
    lists = st.lists(inner, max_size=3).map(lambda values: f"[{', '.join(values)}]")
    mappings = st.lists(st.tuples(keys, inner), max_size=3).map(
        lambda pairs: "{" + ", ".join(f"{key} : {value}" for key, value in pairs) + "}"
    )
    return st.tuples(st.sampled_from(["", "&a ", "&b "]), st.sampled_from(_TAGS), lists | mappings).map("".join)


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(st.recursive(st.tuples(st.sampled_from(_TAGS), st.sampled_from(_SCALARS)).map("".join), _values, max_leaves=6))
def test_any_aliases_merges_and_tags_are_data_or_one_clear_error(value: str) -> None:
    with suppress(UsageError):
        assert isinstance(read(f"top: {value}\n"), dict)
