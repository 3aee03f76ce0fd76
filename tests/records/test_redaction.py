from __future__ import annotations

import json

import pytest

from vivavoce.errors import TargetFault
from vivavoce.records.redaction import MARK, Keys, keys_of_environment, without_keys
from vivavoce.records.score import Failure, failure_of

KEY = "kJ8/2+x\"Zé=qw'erty"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("wrong key sk-proj-abcdEFGH12345678!", "wrong key ***!"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        ('{"authorization": "Bearer abc12345"}', '{"authorization": "Bearer ***"}'),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': 'Basic ***'}"),
        (f"viva_{'a' * 43}", "***"),
        ("id AKIAIOSFODNN7EXAMPLE", "id ***"),
        (f"ghp_{'a1' * 18} failed", "*** failed"),
        ("eyJhbGciOi.eyJzdWIiOi.c2ln", "***"),
        ("postgresql://user:pa$sw0rd@db:5432/x", "postgresql://***@db:5432/x"),
        ("https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@sentry.io/1", "https://***@sentry.io/1"),
        (f"sk_live_{'a1B2' * 6} refused", "*** refused"),
        (f"npm_{'a1B2' * 9}", "***"),
        (f"whsec_{'a1B2' * 8} and gsk_{'a1B2' * 13}", "*** and ***"),
        (f"SG.{'a1B2' * 5}.{'a1B2' * 10}", "***"),
        ("PGPASSWORD=hunter22x psql", "PGPASSWORD=*** psql"),
        ("MYSQL_PWD: 'hunter22x'", "MYSQL_PWD: '***'"),
        ('{"ssh_passphrase": "opensesame"}', '{"ssh_passphrase": "***"}'),
        ("x-api-key: 0123456789abcdef", "x-api-key: ***"),
        (r"{\"api_key\": \"0123456789abcdef\"}", r"{\"api_key\": \"***\"}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- x", "*** x"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "***"),
    ],
)
def test_what_has_the_shape_of_a_key_is_cut(text: str, left: str) -> None:
    assert without_keys(text) == left
    assert without_keys(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bearer authentication is required",
        "basic authentication is required",
        "http://localhost:8000/runs/a@b:c",
        "ssh://deployment-account@host/path",
        "KeyError: 'password'",
        "Unexpected token: is not JSON",
        "task-management-of-all-things-possible",
        '{"Authorization": "Bearer ${BOT_KEY_1}", "password": "{{sample.extra_vars.word}}"}',
        '{"authorization": "${BOT_KEY_1}"}',
        "total_tokens: 123456789",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert without_keys(text) == text


def test_a_known_key_is_cut_in_every_spelling() -> None:
    keys = Keys.of([KEY])
    once = json.dumps({"said": KEY})
    for text in (
        KEY,
        once,
        json.dumps(once),
        json.dumps(once, ensure_ascii=False),
        "kJ8%2F2%2Bx%22Z%C3%A9%3Dqw%27erty",
    ):
        assert keys.are_in(text)
        assert MARK in keys.cut(text)
        assert "erty" not in keys.cut(text)
    assert json.loads(keys.cut(once)) == {"said": MARK}


@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        ("nvapi-0123456789ab", "a\nvapi-0123456789ab", "a\nvapi-0123456789ab"),
        ("0123456789abcdef\\", 'it is "0123456789abcdef"', 'it is "0123456789abcdef"'),
        ('"0123456789abcdef', "0123456789abcdef", "0123456789abcdef"),
    ],
)
def test_what_was_json_still_is_where_a_key_stands_in_its_spelling_alone(key: str, text: str, left: str) -> None:
    keys = Keys.of([key])
    assert keys.are_in(json.dumps([text]))
    assert json.loads(keys.cut(json.dumps([text, {key: key}]))) == [left, {MARK: MARK}]


def test_a_key_is_known_without_the_quotes_around_it() -> None:
    keys = keys_of_environment("", {"BOT_KEY": '"0123456789abcdef"\n'})
    assert json.loads(keys.cut(json.dumps(["0123456789abcdef"]))) == [MARK]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"password": 12345678, "n": 1}, {"password": MARK, "n": 1}),
        ({"password": [12345678, 2]}, {"password": [12345678, 2]}),
        ({"said": json.dumps({"password": 12345678})}, {"said": json.dumps({"password": MARK})}),
        ({"said": "-----BEGIN PRIVATE KEY-----\ncut off"}, {"said": MARK}),
        ([json.dumps("-----BEGIN PRIVATE KEY-----\ncut off")], [json.dumps(MARK)]),
    ],
)
def test_what_was_json_still_is_without_the_shapes_of_keys(value: object, left: object) -> None:
    assert json.loads(without_keys(json.dumps(value))) == left


@pytest.mark.parametrize(
    "value",
    [
        "",
        "test",
        "s3cr3t!",
        "not-needed",
        "postgres",
        "Changeme",
        "CHANGEME",
        "lm-studio",
        "12345678",
        "2024-05-01",
        "?" * 8,
    ],
)
def test_a_short_key_that_may_be_a_word_or_a_number_stays(value: str) -> None:
    assert Keys.of([value]).cut(f"a {value}.") == f"a {value}."


@pytest.mark.parametrize(
    "value", ["hunter22", "tr0ub4dor&3", "p@ssword", "OpenSesame", "pässw0rt", "correct horse battery"]
)
def test_a_key_that_is_neither_a_word_nor_a_number_is_cut_from_8_characters_on(value: str) -> None:
    assert Keys.of([value]).cut(f"a {value}.") == "a ***."


@pytest.mark.parametrize(
    ("name", "value", "is_key"),
    [
        ("PGPASSWORD", "hunter22x", True),
        ("MYSQL_PWD", "hunter22x", True),
        ("DB_PASS", "hunter22x", True),
        ("SSH_KEY_PASSPHRASE", "hunter22x", True),
        ("RABBITMQ_DEFAULT_PASS", "hunter22x", True),
        ("GOOGLE_CREDENTIALS", "hunter22x", True),
        ("SENTRY_DSN", "https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@sentry.io/1", True),
        ("GIT_URL", "https://ghp1234567890abcdefX:x-oauth-basic@github.com/a/b", True),
        ("STORE", "postgresql://customer-support-bot@host/exams", False),
        ("PWD", "/home/me/exam-2024", False),
        ("OLDPWD", "/home/me/exam-2024", False),
        ("SSH_ASKPASS", "/usr/bin/ssh-askpass", False),
        ("COMPASS", "north-42", False),
    ],
)
def test_passwords_and_users_that_are_keys_are_known_by_the_name_of_their_variable(
    name: str, value: str, is_key: bool
) -> None:
    keys = keys_of_environment("", {name: value})
    assert bool(keys.spellings) is is_key
    if is_key and "://" not in value:
        assert keys.cut(f"login with {value} failed") == f"login with {MARK} failed"


def test_the_user_of_an_address_that_is_a_key_is_cut() -> None:
    keys = keys_of_environment("", {"SENTRY_DSN": "https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@sentry.io/1"})
    assert keys.cut("key 0a1b2c3d4e5f60718293a4b5c6d7e8f9") == "key ***"


def test_keys_are_found_by_the_names_of_variables_and_in_addresses() -> None:
    environment = {
        "OPENAI_API_KEY": "value-of-openai-0",
        "VIVAVOCE_TOKEN": "value-of-vivavoce-1",
        "AWS_SECRET_ACCESS_KEY": " value-of-aws-234567\n",
        "VIVAVOCE_STORE": "postgresql://me:value%20of-store-3@db/x",
        "BOT": "value-of-the-bot-4",
        "JUDGE": "value-of-the-judge-5",
        "KEYBOARD": "value-of-keyboard-6",
        "HOME": "/home/value-of-home-7",
    }
    suite = json.dumps({"target": {"headers": {"X": "Bearer ${BOT}"}}, "graders": {"g": {"api_key_env": "JUDGE"}}})
    text = json.dumps(environment)
    left = keys_of_environment(suite, environment).cut(text)
    assert [value in left for value in ("value-of-keyboard-6", "value-of-home-7")] == [True, True]
    assert left.count(MARK) == 6
    assert "value-of-the-bot-4" in keys_of_environment("", environment).cut(text)
    assert keys_of_environment("", environment).cut("value of-store-3") == MARK


def test_a_failure_tells_no_key() -> None:
    fault = TargetFault("401 for key sk-abcdefgh12345678", kind="http", evidence="you sent Bearer abc12345678")
    failure = failure_of(fault, "target")
    assert (failure.message, failure.evidence) == ("401 for key ***", "you sent Bearer ***")
    crash = failure_of(RuntimeError("sk-abcdefgh12345678"), "target")
    assert "abcdefgh" not in crash.model_dump_json()
    plain = Failure(blame="judge", kind="x", message="broke")
    assert plain.redact() is plain
