from __future__ import annotations

from vivavoce.records.trajectory import Trajectory


def test_a_record_from_before_a_rule_about_messages_can_be_read() -> None:
    stored = {"turns": [{"index": 0, "messages": [{"role": "user", "text": "Hello."}]}]}
    [message] = Trajectory.model_validate(stored).messages
    assert message.to_dict() == {"role": "user", "text": "Hello."}
