"""What was given to batch services."""
