"""Forms: what a page sends back, with the proof that it was a page of ours.

A page elsewhere can have a browser send a form here, but it cannot read our pages, and so not the key that stands in
them: a hash of a secret of this server and of who was shown the page. This is besides the check of the origin.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from vivavoce.errors import UsageError
from vivavoce.server.users import user_of

KEY = "form_key"
"""The name of the hidden field."""

MOST_FIELDS = 100


class ForeignForm(UsageError):
    """A form that no page of this server has shown to this user."""


def form_key(request: Request) -> str:
    """Return what a form on a page for this request must bring back."""
    user = user_of(request)
    who = f"{user.id}\0{user.name}".encode("utf-8", "surrogatepass")
    return hmac.new(request.app.state.secret, who, hashlib.sha256).hexdigest()


async def _checked(request: Request) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise UsageError("this takes a form")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise UsageError(f"a form has at most {MOST_FIELDS} fields") from error
    if not hmac.compare_digest(fields.pop(KEY, "").encode(), form_key(request).encode()):
        raise ForeignForm("the server was started again after this page was shown; load the page again, then send it")
    return fields


Form = Annotated[Mapping[str, str], Depends(_checked)]
"""The fields of a form that one of our pages has sent."""
