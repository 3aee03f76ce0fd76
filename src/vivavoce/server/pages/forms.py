"""Forms: what a page sends back, with the proof that it was a page of ours.

A page elsewhere can have a browser send a form here, but it cannot read our pages, and so not the key that stands in
them: a hash of a secret of this server and of who was shown the page. This is besides the check of the origin.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request

from vivavoce.errors import UsageError
from vivavoce.server.users import user_of

KEY = "form_key"
"""The name of the hidden field."""

_SALT = 16
"""Characters that are new in each key, or the length of a compressed page could tell what the key is."""

MOST_FIELDS = 100
MAX_FORM = 1_000_000
"""Bytes that a form may have."""


class ForeignForm(UsageError):
    """A form that no page of this server has shown to this user."""


def form_key(request: Request) -> str:
    """Return what a form on a page for this request must bring back."""
    return _key(request, secrets.token_hex(_SALT // 2))


def _key(request: Request, salt: str) -> str:
    user = user_of(request)
    who = f"{salt}\0{user.id}\0{user.name}".encode("utf-8", "surrogatepass")
    return salt + hmac.new(request.app.state.secret, who, hashlib.sha256).hexdigest()


async def _checked(request: Request) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415, "this takes a form of one of our pages")
    if int(request.headers.get("content-length", "0")) > MAX_FORM:
        raise HTTPException(413, f"a form may have {MAX_FORM:,} bytes")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise UsageError(f"a form has at most {MOST_FIELDS} fields") from error
    given = fields.pop(KEY, "")
    if not hmac.compare_digest(given.encode(), _key(request, given[:_SALT]).encode()):
        raise ForeignForm("the server was started again after this page was shown; load the page again, then send it")
    return fields


Form = Annotated[Mapping[str, str], Depends(_checked)]
"""The fields of a form that one of our pages has sent."""
