"""Targets as the command line names them; a mistake names the option."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.target_names import read_target


def test_a_function_is_found_from_where_we_are(tmp_path: Path) -> None:
    Path("bot.py").write_text("def reply(message): ...\n")
    assert read_target("bot.py:reply") == {"kind": "function", "function": f"{tmp_path / 'bot.py'}:reply"}


def test_an_endpoint_is_an_address_and_a_model() -> None:
    target = {"kind": "openai", "base_url": "http://localhost/v1", "model_handles": ["org/model#1"]}
    assert read_target("http://localhost/v1#org/model#1") == target


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nofile.py:f", "--target: no file 'nofile.py'"),
        ("bot.py:rpely", "--target: bot.py has no 'rpely'; did you mean 'reply'?"),
        ("bot.py", "--target: 'bot.py' must be file.py:function or http://host/v1#MODEL"),
        ("http://localhost/v1", "--target: the model is missing; write http://localhost/v1#MODEL"),
        ("http://#m", "--target: 'http://' is not a web address such as http://localhost:8000/v1"),
        (
            "http://me:s3cret@host/v1",
            "--target: the address holds a user name or a password, which would be stored and shown; leave them out",
        ),
    ],
)
def test_a_wrong_name_is_one_line_that_names_the_option(name: str, said: str) -> None:
    Path("bot.py").write_text("def reply(message): ...\n")
    with pytest.raises(UsageError) as caught:
        read_target(name)
    assert str(caught.value) == said


def test_a_file_that_raises_keeps_its_own_place(tmp_path: Path) -> None:
    Path("broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError) as caught:
        read_target("broken.py:f")
    assert str(caught.value).startswith(f"{tmp_path / 'broken.py'}:1 raises ZeroDivisionError")
