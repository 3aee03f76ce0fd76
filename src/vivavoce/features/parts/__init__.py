"""Large datasets in parts: each part is a run of its own, made by any process, and all parts make one run."""
