"""Webhooks: who is told of events, and what is still to be sent."""
