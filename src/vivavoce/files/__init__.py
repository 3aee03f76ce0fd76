"""Files of rows: JSONL, JSON, CSV and Parquet, read strictly and written whole."""
