from __future__ import annotations

import socket
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.server.listening import is_loopback_name, listening, public_address
from vivavoce.server.serving import serve
from vivavoce.store.store import Store

from .live import get, serving


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("localhost.evil.example", False),
        ("192.0.2.1", False),
        ("", False),
    ],
)
def test_a_loopback_address_is_known(host: str, loopback: bool) -> None:
    assert is_loopback_name(host) == loopback


def test_nothing_listens_where_others_could_come_in_without_a_token(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "x.db")) as store, pytest.raises(UsageError, match="VIVAVOCE_TOKEN"):
        serve(store, "0.0.0.0", 0)
    with Store.open(str(tmp_path / "x.db")) as store:
        store.tokens.revoke(store.tokens.create("ida", "admin")[0].id)
        with pytest.raises(UsageError, match="viva store token create"):
            serve(store, "127.0.0.1", 0, public="https://viva.example.org")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://Viva.Example.org/", "https://viva.example.org"),
        ("https://viva.example.org:443", "https://viva.example.org"),
        ("http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"),
    ],
)
def test_the_address_of_a_proxy_is_read_as_browsers_send_it(given: str, address: str) -> None:
    assert public_address(given) == address


@pytest.mark.parametrize(
    "wrong", ["", "viva.example.org", "ftp://x", "https://", "https://x/path", "https://u:p@x", "https://x:99999"]
)
def test_what_is_no_address_of_a_proxy_is_said_to_be_none(wrong: str) -> None:
    with pytest.raises(UsageError, match="--public takes an address"):
        public_address(wrong)


def test_an_address_that_cannot_be_used_is_said_to_be(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1"):
            listening("127.0.0.1", other.getsockname()[1])
    for host, port in (("not an address", 0), ("127.0.0.1", 70_000)):
        with pytest.raises(UsageError, match="cannot listen"):
            listening(host, port)


def test_two_servers_share_one_store(store: Store) -> None:
    with serving(store) as one, serving(store) as other:
        assert get(f"{one}/api/v1/runs").body == get(f"{other}/api/v1/runs").body
