"""Who of the speakers in a table is the user and who the assistant."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.exchange.format import Loss

_USERS = (
    *("user", "human", "customer", "client", "caller", "visitor", "patient", "student", "requester", "usr"),
    *("enduser", "consumer", "guest", "q", "buyer", "shopper", "member"),
)
_ASSISTANTS = (
    *("assistant", "ai", "bot", "gpt", "model", "chatbot", "agent", "operator", "advisor", "support", "rep"),
    *("representative", "csr", "supportagent", "assistantbot", "a", "llm", "chatgpt", "claude", "gemini"),
)
_ROLES = {
    **dict.fromkeys(_USERS, "user"),
    **dict.fromkeys(_ASSISTANTS, "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "toolresult"), "tool"),
    "system": "system",
    "sys": "system",
    "developer": "developer",
}


def roles_of(speakers: Sequence[str], loss: Loss) -> list[tuple[str, bool]]:
    """Return the role of each message of a conversation, and whether the speaker is known by it.

    Someone with a name of their own is the assistant if another is the user, and else the one who begins is the user.
    A `system` that answers, where there is no assistant, is one, as in many sets of dialogues.
    """
    found = [_ROLES.get("".join(filter(str.isalnum, speaker.lower()))) for speaker in speakers]
    names = list(dict.fromkeys(speaker for speaker, role in zip(speakers, found, strict=True) if role is None))
    if "assistant" not in found and not names and "system" in found[1:] and "user" in found[: _last(found, "system")]:
        loss.guessed("that 'system', which answers the user, is the assistant")
        return [("assistant" if role == "system" else role or "user", True) for role in found]
    users: set[str] = set()
    if names and "user" not in found:
        loss.guessed("who is the user: the one who begins")
        users.add(names[0])
    elif names:
        loss.guessed("that speakers with names of their own are assistants")
    return [
        (role, True) if role is not None else ("user" if speaker in users else "assistant", False)
        for speaker, role in zip(speakers, found, strict=True)
    ]


def _last(found: Sequence[str | None], role: str) -> int:
    return max(index for index, one in enumerate(found) if one == role)
