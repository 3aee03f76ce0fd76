"""Views: pages with their filter, order and columns, kept under a name for oneself or for everybody."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlalchemy import Connection, delete, insert, or_, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.extensions import Page, answers_of
from vivavoce.store.access import NotYours
from vivavoce.store.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, values_of
from vivavoce.store.database.schema import views

LONGEST_NAME = 100
LONGEST_PATH = 4000
MOST = 200
"""Views that one person may keep."""


class View(Listed):
    """A page under a name; `path` is its address on a server of the store, `shared` that everybody sees it."""

    id: int
    author: str
    name: str
    path: str
    shared: bool
    created_at: float


@dataclass(frozen=True, slots=True)
class Views:
    """The views of a store."""

    database: Database

    def save(self, author: str, name: str, path: str, *, shared: bool = False) -> View:
        """Keep a page under a name, in place of one's earlier view of that name.

        Raises:
            UsageError: the name or the address is not one that can be kept, or there are too many.
            StoreError: the store cannot be written.
        """
        name = _checked_name(name)
        values = {"path": checked_path(path), "shared": int(shared), "created_at": time.time()}
        v = views.c
        with self.database.writing() as connection:
            mine = select(v.id).where(v.author == author)
            found = connection.execute(mine.where(v.name == name)).scalar()
            if found is not None:
                connection.execute(update(views).where(v.id == found).values(values))
            elif len(connection.execute(mine).all()) >= MOST:
                raise UsageError(f"one person can keep {MOST} views; remove some first")
            else:
                made = insert(views).values(**values, author=author, name=name).returning(v.id)
                found = connection.execute(made).scalar_one()
            note(connection, author, "view.save", name, {"path": path, "shared": shared})
            return _view(connection.execute(select(views).where(v.id == found)).one())

    def all(self, user: str) -> list[View]:
        """Return one's own views and those that others share, by name."""
        query = select(views).where(or_(views.c.author == user, views.c.shared == 1))
        with self.database.connected() as connection:
            return [_view(row) for row in connection.execute(query.order_by(views.c.name, views.c.id))]

    def remove(self, view_id: int, actor: str, *, anyones: bool = False) -> View:
        """Remove one's own view, with `anyones` also one that somebody else shares, and return it.

        Raises:
            UsageError: there is no such view that this person sees.
            NotYours: it is somebody else's.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            row = connection.execute(select(views).where(views.c.id == view_id)).first()
            if row is None or (row.author != actor and not row.shared):
                raise NotFound("view", str(view_id))
            found = _view(row)
            if found.author != actor and not anyones:
                raise NotYours(f"view {view_id} is by {found.author}; only its author or an admin removes it")
            connection.execute(delete(views).where(views.c.id == view_id))
            note(connection, actor, "view.remove", found.name, {"path": found.path, "author": found.author})
        return found


def copy_views(source: Connection, target: Connection) -> int:
    """Copy the views of all people, and return how many; of two of one name by one person the newer stays."""
    v, copied = views.c, 0
    for row in source.execute(select(views).order_by(v.id)).all():
        values = {name: value for name, value in values_of(row).items() if name != "id"}
        there = target.execute(select(views).where(v.author == row.author, v.name == row.name)).first()
        if there is None:
            target.execute(insert(views).values(values))
        elif there.created_at < row.created_at:
            target.execute(update(views).where(v.id == there.id).values(values))
        else:
            continue
        note(target, row.author, "view.copy", row.name, {"path": row.path, "shared": bool(row.shared)})
        copied += 1
    return copied


def checked_path(path: str) -> str:
    r"""Return the address of a page that can be kept: a list of runs, a run, a comparison, or the page of a tab.

    Browsers read `//x` and `/\x` as another host, and ignore tabs and line ends in addresses.

    Raises:
        UsageError: it is another address.
    """
    plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) <= LONGEST_PATH
    if plain and path.startswith("/") and not path.startswith("//"):
        where = urlsplit(path).path
        pages = ("/runs/", *(tab.link for tab in answers_of(Page, "page_tabs")))
        if where == "/" or (where.startswith(pages) and "/.." not in where):
            return path
    raise UsageError(
        "a view is the address of a list of runs, a run, a comparison, or a tab of this server, such as /?q=refunds"
    )


def _checked_name(name: str) -> str:
    if not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise UsageError(f"a view name must be one line of at most {LONGEST_NAME} characters")
    return name.strip()


def _view(row: AnyRow) -> View:
    return View.model_validate({**values_of(row), "shared": bool(row.shared)})
