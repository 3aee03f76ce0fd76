"""What is known about the answers of the fake server in `../shared/bench`."""

from __future__ import annotations

QUOTE = (
    "The assistant addressed the stated goal of the user: it asked for the missing details, applied the policy, and "
    "confirmed the result."
)
"""What its made-up answers quote. It is put into each conversation: a judge whose quotes are found nowhere is asked
again, which is not what is measured."""
