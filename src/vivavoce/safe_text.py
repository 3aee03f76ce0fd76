"""Text from models, targets and files made safe to show to people, and to quote in what models read."""

from __future__ import annotations

import json
import re

from pydantic_core import PydanticSerializationError, to_json

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

_UNSEEN = re.compile(
    "[\ud800-\udfff\u0085\u2028\u2029"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
"""What JSON leaves as it is and a reader does not see: line separators, characters without a glyph, tag characters.

Joiners between letters of other scripts and between emoji stay: they change how these look.
"""

_TOKEN = re.compile(
    r"<(?=\||｜|<SYS>>|</SYS>>|/?(?:s|bos|eos|pad|unk|mask|sep|start_of_\w+|end_of_\w+|unused\d+|extra_id_\d+|reserved\w*"
    r"|tool_\w+|think|thinking|im_start|im_end|fim_\w+|suf|mid|eot|file_sep|filename|repo_name|gh_stars|issue_\w+|commit_\w+"
    r"|jupyter_\w+|empty_output|endoftext|begin_of_\w+)>)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|gMASK|CLS|SEP|MASK|PAD)\])",
    re.IGNORECASE,
)
"""The first character of what a chat template may read as a control token, such as `<|im_end|>` or `[INST]`."""


def quoted(value: object) -> str:
    r"""Return a text, or anything else that JSON can hold, as JSON on one line, as models read it in a prompt.

    Characters that nobody sees and control tokens of chat templates are escaped as JSON has it (`\u003c|im_end|>`), so
    that they are seen, do nothing, and are the same text to whoever reads the JSON.
    """
    try:
        line = to_json(value).decode() if isinstance(value, str) else _line(value)  # a text in a third of the time
    except PydanticSerializationError:  # half a surrogate pair, which is not UTF-8
        line = _line(value)
    if not line.isascii():
        line = _UNSEEN.sub(lambda match: _escape(match[0]), line)
    return _TOKEN.sub(lambda match: _escape(match[0]), line) if "<" in line or "[" in line else line


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if not character.isascii() else f"\\u{ord(character):04x}"


def safe(text: str) -> str:
    """Return a text without control characters, escape sequences and marks that reverse the reading direction."""
    if text.isprintable():  # which none of these characters is
        return text
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def encodable(text: str) -> str:
    r"""Return a text that can be written as UTF-8: a lone surrogate becomes the six characters `\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()
