"""Files for fine-tuning Claude on Amazon Bedrock: texts of user and assistant, one after the other.

Each line has an optional `system` and at least two messages, which begin with the user, end with the assistant and
alternate; tools and images are not a part of it. Claude has no file format of pairs.
Source: the page on preparing data for fine-tuning Anthropic's models in the Amazon Bedrock user guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vivavoce.conversations.format import Format, Loss, Row
from vivavoce.conversations.messages_of_formats import Message, text_of
from vivavoce.features.formats.labelled import good
from vivavoce.features.formats.openai_tuning import fits_none


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for _, messages in good(rows, loss):
        told = [text_of(message.get("content")) for message in messages if message["role"] in ("system", "developer")]
        said = list(_texts(messages, loss))
        while said and said[0]["role"] == "assistant":
            loss.dropped("words of the assistant before the user's first")
            said.pop(0)
        if len(said) < 2:
            loss.dropped("conversation without a question and an answer in words")
            continue
        yield {**({"system": "\n\n".join(told)} if told else {}), "messages": said}


def _texts(messages: list[Message], loss: Loss) -> Iterator[Row]:
    """Yield the words of user and assistant in turn; those of one speaker in a row are one message."""
    speaker, words = "", list[str]()
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool" or message.get("tool_calls"):
            loss.dropped("tool call" if role != "tool" else "result of a tool", index)
        text = text_of(message.get("content"))
        if role not in ("user", "assistant") or not text.strip():
            continue
        if role != speaker and words:
            yield {"role": speaker, "content": "\n\n".join(words)}
            words = []
        speaker = role
        words.append(text)
    if words:
        yield {"role": speaker, "content": "\n\n".join(words)}


FORMAT = Format("anthropic-tuning", "fine-tuning of Claude on Amazon Bedrock", fits_none, None, _write)
