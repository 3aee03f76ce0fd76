"""Addresses of models: those that a provider fixed for everybody, and how an address becomes part of an identity."""

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
    """Return an address as records may hold it: one spelling of each, without user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}{parts.path.rstrip('/')}"
