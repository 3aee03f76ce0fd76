"""Comments of people on conversations and turns."""
