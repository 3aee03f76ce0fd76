"""Language models that we call."""
