"""Answers that readers gave, as the lines that a batch service would return.

    python bench/prompts/answers.py plain.jsonl > answers.jsonl

A plain line is `{"custom_id": …, "answer": …}`: the JSON object that the request asks for, or the text that a reader
wrote, as it is. A line of a batch service is passed on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def response(line: Line) -> Line:
    """Return a line as a batch service writes it."""
    if "answer" not in line:
        return line
    answer = line["answer"]
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            print(json.dumps(response(json.loads(line)), ensure_ascii=False))
