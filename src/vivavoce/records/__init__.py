"""What a run leaves behind, as plain data."""
