"""Spans as Phoenix exports them, in OpenInference's words: objects of its REST interface, or its client's data frame.

Source: Phoenix's REST reference and the columns of `get_spans_dataframe` of its Python client.
"""

from __future__ import annotations

from vivavoce.conversations.format import Format
from vivavoce.features.formats.openinference import NAME
from vivavoce.features.formats.spans import LISTS, is_phoenix, read

FORMAT = Format(
    NAME, "OpenInference, as Phoenix exports it", lambda record: is_phoenix(record.value), read, lists=LISTS
)
