"""Addresses of models: the fixed ones of providers, and how an address becomes part of an identity."""

from __future__ import annotations

from urllib.parse import urlsplit

OPENAI = "https://api.openai.com/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
_PROVIDERS = {OPENAI: "openai", OPENROUTER: "openrouter"}
_PORTS = {"http": 80, "https": 443}


def identity_at(address: str, model: str) -> str:
    """Return the identity of a model: `PROVIDER:MODEL` at an address that a provider fixed, else `ADDRESS#MODEL`."""
    place = plain_address(address)
    provider = _PROVIDERS.get(place)
    return f"{provider}:{model}" if provider else f"{place}#{model}"


def plain_address(address: str) -> str:
    """Return an address in the one form that records hold, without user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    host_text = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host_text}{port}{parts.path.rstrip('/')}"
