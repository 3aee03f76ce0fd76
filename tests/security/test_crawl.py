"""A crawler follows every link of a server that strangers have filled: what they wrote is text, and nothing breaks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from server.live import cookie_of, get, send, serving
from server.pages.cases import everywhere, keep
from server.pages.hostile import TEXTS
from server.pages.test_hostile import harmless
from vivavoce.records.label import Remarks
from vivavoce.store.store import Store

CONTROL = ("\x1b", "\x9b", "\u202e")
STARTS = ("/", "/jobs", "/label", "/compare", "/trends", "/watch", "/search?q={text}", "/?q={text}", "/?tag={text}")
STARTS_OF_RUN = (
    "/runs/{run}?filter={text}",
    "/runs/{run}?sort={text}",
    "/compare?a={run}&b={text}",
    "/sign-in?next={text}",
)


class Site:
    """A server in which a text stands in every field that somebody can write, and a browser that is signed in."""

    def __init__(self, url: str, headers: dict[str, str], text: str) -> None:
        self.url, self.headers, self.text = url, headers, text

    def plant(self, run: str) -> int:
        """Write the text into every field that a request with the role `write` can write; return how many took it."""
        sample = f"/api/v1/runs/{run}/samples/{quote(self.text, safe='')}/0"
        target = quote(self.text, safe="")
        bodies: list[tuple[str, str, object]] = [
            ("POST", f"{sample}/comments?target={target}", {"text": f"{self.text} #t1"}),
            ("PUT", f"{sample}/labels?target={target}&grader=whole", {"verdict": "fail", "note": self.text}),
            ("PATCH", f"/api/v1/runs/{run}", {"title": self.text[:200], "notes": self.text, "tags": [self.text[:60]]}),
            (
                "POST",
                "/api/v1/views",
                {"name": self.text[:100], "path": f"/runs/{run}?q={target}", "shared": True},
            ),
            ("POST", "/api/v1/label-queues", {"run": run, "people": [self.text[:100]]}),
            ("POST", "/api/v1/jobs", {"kind": "run", "suite": self.text}),
        ]
        statuses = [send(method, self.url + path, body, self.headers).status for method, path, body in bodies]
        assert not [status for status in statuses if status >= 500], statuses
        return sum(status < 300 for status in statuses)

    def crawl(self, starts: list[str], limit: int, seed: int) -> int:
        """Visit pages in an order that a seed decides, and check each; return how many were visited."""
        order, pending, seen = random.Random(seed), list(starts), set[str]()
        while pending and len(seen) < limit:
            path = pending.pop(order.randrange(len(pending)))
            if path in seen:
                continue
            seen.add(path)
            reply = get(self.url + path, self.headers)
            assert reply.status < 500, (path, reply.text[:500])
            assert "default-src 'none'" in reply.headers["content-security-policy"], path
            if "text/html" not in reply.headers.get("content-type", ""):
                continue
            page = harmless(reply.text)
            assert not [control for control in CONTROL if control in reply.text], path
            for link in page.having("href"):
                address = urlsplit(urljoin(f"{self.url}{path}", link))
                assert f"{address.scheme}://{address.netloc}" == self.url, (path, link)
                if "/export" in address.path:  # a report in one file has its own styles, and its own test
                    continue
                pending.append(address.path + (f"?{address.query}" if address.query else ""))
        return len(seen)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "crawled.db")) as store:
        yield store


def visit(store: Store, text: str, limit: int, seed: int) -> tuple[int, int]:
    """Fill a store with a text, and crawl its server; return how many fields took it and how many pages were seen."""
    for number, run in enumerate(("run-1", "run-2")):
        keep(store, [everywhere(text)], run, at=number, suite=text, spec={"description": text}, version=text)
        store.remark(run, Remarks(title=text[:200], notes=text, tags=[text[:60]]), "ida")
    name = text[:100] if text[:100].isprintable() and text.strip() else "Ida"
    secret = store.tokens.create(name, "write")[1]
    with serving(store, demanded=True) as url:
        site = Site(url, {"cookie": cookie_of(store, secret)}, text)
        planted = site.plant("run-1")
        starts = [start.format(text=quote(text, safe=""), run="run-1") for start in (*STARTS, *STARTS_OF_RUN)]
        return planted, site.crawl(starts, limit, seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_strangers_wrote_is_text_on_every_page(store: Store, seed: int) -> None:
    text = random.Random(seed).choice(TEXTS)
    planted, pages = visit(store, text, limit=120, seed=seed)
    assert planted >= 4
    assert pages >= 60


@pytest.mark.live
@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_every_text_is_text_on_every_page(store: Store, number: int) -> None:
    _, pages = visit(store, TEXTS[number], limit=400, seed=number)
    assert pages >= 60
