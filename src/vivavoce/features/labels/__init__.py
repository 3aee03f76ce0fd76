"""Labels: people's verdicts on conversations, queues, decisions, and how far people and judges agree."""
