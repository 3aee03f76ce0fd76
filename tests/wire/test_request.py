from __future__ import annotations

import pytest

from vivavoce.wire.request import encoded, parsed


def test_a_request_says_what_aiohttp_said() -> None:
    address = parsed("https://bücher.example/a b/../ü?q=1&x=é#part")
    assert address.origin == ("xn--bcher-kva.example", 443, True)
    assert encoded("POST", address, {"X-Trace": "7"}, b"{}").decode().split("\r\n") == [
        "POST /%C3%BC?q=1&x=%C3%A9 HTTP/1.1",
        "Host: xn--bcher-kva.example",
        "User-Agent: vivavoce",
        "Accept: */*",
        "Accept-Encoding: gzip, deflate",
        "Content-Type: application/octet-stream",
        "X-Trace: 7",
        "Content-Length: 2",
        "",
        "{}",
    ]


def test_headers_of_the_caller_replace_ours_whatever_their_case() -> None:
    sent = encoded("POST", parsed("http://h:8000"), {"content-type": "text/plain", "HOST": "other"}, b"x")
    assert sent.split(b"\r\n")[1:-3] == [
        b"User-Agent: vivavoce",
        b"Accept: */*",
        b"Accept-Encoding: gzip, deflate",
        b"content-type: text/plain",
        b"HOST: other",
    ]


def test_where_a_body_ends_is_not_for_the_caller_to_say() -> None:
    sent = encoded("POST", parsed("http://h"), {"Content-Length": "1", "Transfer-Encoding": "chunked"}, b"body")
    assert sent.endswith(b"octet-stream\r\nContent-Length: 4\r\n\r\nbody")


def test_a_request_without_a_body() -> None:
    assert b"Content" not in encoded("GET", parsed("http://h"), {}, None)
    assert encoded("POST", parsed("http://h"), {}, None).endswith(b"\r\nContent-Length: 0\r\n\r\n")


def test_the_user_of_an_address_is_sent_as_a_header() -> None:
    address = parsed("http://me:p%40ss@[::1]:80/")
    assert (address.origin, address.host) == (("::1", 80, False), "[::1]")
    assert b"Authorization: Basic bWU6cEBzcw==\r\n" in encoded("GET", address, {}, None)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET / HTTP/1.1\r\nX:", {}),
        ("", {}),
        ("GET", {"X": "a\r\nEvil: b"}),
        ("GET", {"X": "a\nb"}),
        ("GET", {"X": "a\0b"}),
        ("GET", {"X\r\nEvil": "b"}),
        ("GET", {"X: y": "b"}),
        ("GET", {"": "b"}),
    ],
)
def test_nothing_may_end_a_line_early(method: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"name of a method|line break"):
        encoded(method, parsed("http://h"), headers, None)
