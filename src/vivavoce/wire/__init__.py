"""Speaking with servers: HTTP with limits and named faults, and the chat completions dialect on top of it."""
