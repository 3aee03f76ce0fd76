"""Which schema of a PostgreSQL database holds the store: decided once, so that no other schema can shadow a table."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, event

from vivavoce.errors import StoreError, UsageError

_SCHEMAS = """
SELECT current_schema(), ARRAY(
    SELECT schema FROM unnest(current_schemas(false)) WITH ORDINALITY AS path(schema, place)
    WHERE (SELECT count(*) FROM pg_tables WHERE schemaname = schema AND tablename IN ('alembic_version', 'runs')) = 2
    ORDER BY place
)
"""
"""The schema for new tables, and the schemas of the search_path that hold a store."""

_USE = "SELECT set_config('search_path', quote_ident(%s), false)"


def use_schema_of_store(engine: Engine, place: str) -> None:
    """Have each connection of an engine use one schema: that of its search_path with a store, else that for new tables.

    The first connection decides. It raises `UsageError` if several schemas hold a store, and `StoreError` if the
    search_path names no schema that the user may use.
    """
    schemas: list[str] = []

    def use_schema(connection: Any, _record: object) -> None:
        try:
            if not schemas:
                schemas.append(_schema_of_store(connection, place))
            connection.execute(_USE, (schemas[0],))
            connection.commit()
        except BaseException:
            connection.close()
            raise

    event.listen(engine, "connect", use_schema)


def _schema_of_store(connection: Any, place: str) -> str:
    new, stores = connection.execute(_SCHEMAS).fetchone()
    if len(stores) > 1:
        raise UsageError(
            f"{place}: the schemas {' and '.join(stores)} of the search_path each hold a store; name one in the "
            f"address with options=-csearch_path%3D{quote(stores[0])}"
        )
    schema = stores[0] if stores else new
    if schema is None:
        raise StoreError(
            f"{place}: its search_path names no schema that exists and that this user may use; the owner of the "
            "database runs: CREATE SCHEMA NAME, or: GRANT USAGE ON SCHEMA NAME TO USER"
        )
    return str(schema)
