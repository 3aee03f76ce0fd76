from __future__ import annotations

import pytest

from vivavoce.models.endpoints import identity_at, plain_address


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("HTTPS://GPU.Example.com:443/v1/", "https://gpu.example.com/v1"),
        ("http://gpu:80", "http://gpu"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://me:secret@host/v1?api-key=secret#secret", "https://host/v1"),
    ],
)
def test_an_address_has_one_spelling_and_holds_no_secret(address: str, plain: str) -> None:
    assert plain_address(address) == plain


def test_an_address_that_a_provider_fixed_is_the_provider() -> None:
    assert identity_at("https://API.openai.com/v1/", "m") == "openai:m"
    assert identity_at("https://openrouter.ai/api/v1", "org/m") == "openrouter:org/m"
    assert identity_at("https://api.openai.com.example.com/v1", "m") == "https://api.openai.com.example.com/v1#m"
