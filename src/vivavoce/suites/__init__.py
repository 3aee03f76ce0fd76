"""The YAML that people write: its schema, its dialects, and the exam built from it."""
