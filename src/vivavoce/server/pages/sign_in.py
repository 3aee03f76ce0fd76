"""Signing in: a token is entered once in a form, and begins a session whose id no script can read.

The browser never keeps the token. The session ends at sign-out, without use, and with its token.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.server.authenticator import SIGN_IN, SIGN_OUT, too_many
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import webhook_list
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import server_of
from vivavoce.server.users import MAY, user_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get(SIGN_IN)
def sign_in(request: Request, next: str = "/") -> Response:  # noqa: A002 - it is called so in the address
    """Ask for a token, or show the user and a sign-out button."""
    return _page(request, next)


@router.post(SIGN_IN)
async def signed_in(request: Request, form: Form) -> Response:
    """Accept a token and continue to the requested page."""
    authenticator = server_of(request).authenticator
    token, next_page = form.get("token", "").strip(), local(form.get("next", "/"))
    at = authenticator.asker(request.scope, request.headers)
    if await authenticator.user(token, at) is None:
        seconds = authenticator.wait(at)
        return too_many(request.scope, seconds) if seconds else _page(request, next_page, wrong=True)
    answer = RedirectResponse(next_page, 303)
    answer.headers["set-cookie"] = await authenticator.begin_session(token)
    return answer


@router.post(SIGN_OUT)
async def signed_out(request: Request, form: Form) -> Response:
    """End the session; the token stays valid until it is revoked."""
    del form
    authenticator = server_of(request).authenticator
    answer = RedirectResponse(SIGN_IN, 303)
    answer.headers["set-cookie"] = await authenticator.end_session(request.headers)
    return answer


def local(address: str) -> str:
    r"""Return an address of one of our own pages; any other becomes `/`.

    Browsers read `//x` and `/\x` as another host, and ignore tabs and line ends in addresses.
    """
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"


def _page(request: Request, next_page: str, *, wrong: bool = False) -> Response:
    user = user_of(request)
    values: dict[str, object] = {
        "section": "",
        "demanded": server_of(request).access.demanded,
        "user": user if user.id and not wrong else None,
        "may": MAY[user.role],
        "wrong": wrong,
        "next": local(next_page),
        "form_key": form_key(request),
        "sign_out": SIGN_OUT,
        "webhooks": webhook_list() if user.may("admin") else None,
    }
    return page("sign_in.html", values, 401 if wrong else 200)
