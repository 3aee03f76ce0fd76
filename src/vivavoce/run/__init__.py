"""The engine: attempts, resuming, grading again."""
