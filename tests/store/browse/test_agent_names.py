"""Names of assistants in the JSON of messages, as a store has it."""

from __future__ import annotations

from vivavoce.store.browse.scenarios import agent_names


def test_names_of_agents_are_read_in_messages_of_many_parts() -> None:
    parts = '"content":[{"type":"text","text":"a]"},{"type":"text","text":"b","notes":[["c"]]}]'
    messages = f'{{"role":"assistant",{parts}}},' * 40_000
    assert list(agent_names(messages)) == []
    message = f'{{"role":"assistant",{parts},"name":"ann"}},{{"role":"assistant","content":null,"name":"bob"}}'
    assert list(agent_names(f"{messages}{message}")) == ['"ann"', '"bob"']
    assert list(agent_names('[{"role":"assistant","name":"eve"},{"role":"assistant","content":"hi","name":"x"}]')) == [
        '"eve"',
        '"x"',
    ]
