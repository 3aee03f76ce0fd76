"""The server: an API of what the store holds and of new evaluations, and pages for people."""
