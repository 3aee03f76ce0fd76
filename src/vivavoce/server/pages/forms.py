"""Forms of our pages, protected against forged requests.

A foreign page can make a browser send a form here, but it cannot read our pages and the key in them: a hash of a secret
of the servers of this store and of the user. This is in addition to the check of the origin.
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
from vivavoce.records.score import to_index
from vivavoce.server.state import request_state
from vivavoce.server.users import user_of

KEY = "form_key"
"""The name of the hidden field."""

_SALT = 16
"""Random characters in each key; without them, the length of a compressed page could reveal the key."""

MOST_FIELDS = 100
MAX_FORM = 1_000_000
"""Maximum size of a form, in bytes."""


class ForeignForm(UsageError):
    """A form that is not from a page of this server for this user."""


def form_key(request: Request) -> str:
    """Return the key that a form on a page for this request must send back."""
    return _key(request, secrets.token_hex(_SALT // 2))


def _key(request: Request, salt: str) -> str:
    user = user_of(request)
    who = f"{salt}\0{user.id}\0{user.name}".encode("utf-8", "surrogatepass")
    return salt + hmac.new(request_state(request).secret, who, hashlib.sha256).hexdigest()


async def _check_form(request: Request) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415, "only forms from pages of this server are accepted")
    if int(request.headers.get("content-length", "0")) > MAX_FORM:
        raise HTTPException(413, f"a form can have at most {MAX_FORM:,} bytes")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise UsageError(f"a form can have at most {MOST_FIELDS} fields") from error
    sent_key = fields.pop(KEY, "")
    if not hmac.compare_digest(sent_key.encode(), _key(request, sent_key[:_SALT]).encode()):
        raise ForeignForm("this form is not from a page of this server; reload the page and submit the form again")
    return fields


Form = Annotated[Mapping[str, str], Depends(_check_form)]
"""The fields of a form from one of our pages."""


def index_of(text: str) -> int:
    """Return the index of a turn or trial from its number in a form."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise UsageError("not a turn or trial number; numbers start at 1")
    return to_index(int(text))
