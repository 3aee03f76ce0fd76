"""`NotYours`: what only the person who added something, or an admin, may do."""

from __future__ import annotations

from vivavoce.errors import UsageError


class NotYours(UsageError):
    """Somebody else added it."""
