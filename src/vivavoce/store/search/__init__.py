"""Full-text search over conversations and reasons."""
