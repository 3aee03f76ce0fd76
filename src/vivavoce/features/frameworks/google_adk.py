"""Google's Agent Development Kit: an agent, an `App` or a `Runner`, with a session for each conversation.

Agents are named in what they say, so a transfer to another shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.conversations.objects import messages_of, plain, written_as
from vivavoce.errors import TargetFault
from vivavoce.messages import AnyMessage
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import Beginning, Framework, has, of_target, usage_in, value_in
from vivavoce.targets.target import FirstToken, Reply

_APP, _USER = "vivavoce", "user"


def _adapts(thing: object) -> bool:
    return any(has(thing, *names) for names in (("run_async", "session_service"), ("run_async", "sub_agents"))) or has(
        thing, "root_agent", "plugins"
    )


async def _open(thing: Any, beginning: Beginning) -> _Conversation:
    runner = thing if hasattr(thing, "session_service") else _runner(thing)
    session = await runner.session_service.create_session(
        app_name=runner.app_name, user_id=_USER, session_id=beginning.conversation_id
    )
    return _Conversation(runner, session.id, beginning, owns_runner=runner is not thing)


def _runner(thing: Any) -> Any:
    make = lazy("google.adk.runners:InMemoryRunner")
    return make(app=thing) if hasattr(thing, "root_agent") and hasattr(thing, "plugins") else make(thing, app_name=_APP)


@dataclass(frozen=True, slots=True)
class _Conversation:
    runner: Any
    id: str
    beginning: Beginning
    owns_runner: bool

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        options = dict(self.beginning.options)
        if self.beginning.stream:
            mode = lazy("google.adk.agents.run_config:StreamingMode").SSE
            options["run_config"] = lazy("google.adk.agents.run_config:RunConfig")(streaming_mode=mode)
        events: list[Any] = []
        running = self.runner.run_async(
            user_id=_USER, session_id=self.id, new_message=_content(messages[-1]), **options
        )
        async for event in running:
            if getattr(event, "partial", None):
                for part in value_in(event, "content.parts") or [None]:
                    token.note_piece(getattr(part, "text", None))
            else:
                events.append(event)
        self._check(events)
        written = [plain(event) for event in events]
        return Reply(of_target(messages_of(written, "google-adk")) if written else [], _usage(events))

    def _check(self, events: Sequence[Any]) -> None:
        """Raise the fault of the target where it says that it failed."""
        failed = next((event for event in events if getattr(event, "error_code", None)), None)
        if failed is not None:
            said = f"{failed.error_code}: {getattr(failed, 'error_message', None) or 'it says no more'}"
            raise TargetFault(f"{self.beginning.name} ended with {said}", kind="model")

    async def close(self) -> None:
        if self.owns_runner:
            await self.runner.close()


def _content(message: AnyMessage) -> Any:
    """Return a message as a content of Gemini."""
    written = cast("Mapping[str, Any]", written_as("gemini", [message]))
    return lazy("google.genai.types:Content").model_validate(written["contents"][0])


def _usage(events: Sequence[Any]) -> Usage | None:
    return total(
        usage_in(
            getattr(event, "usage_metadata", None),
            input_tokens="prompt_token_count",
            output_tokens="candidates_token_count",
            cached_input_tokens="cached_content_token_count",
            reasoning_tokens="thoughts_token_count",
        )
        for event in events
    )


FRAMEWORK = Framework("Google ADK", "google-adk", "2.13", _adapts, _open, streams=True)
