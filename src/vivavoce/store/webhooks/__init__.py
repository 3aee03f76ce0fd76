"""Webhooks: who receives events, and what is still to be sent."""
