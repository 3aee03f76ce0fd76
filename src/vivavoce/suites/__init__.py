"""The YAML that people write: its schema, its dialects, and the experiment built from it."""
