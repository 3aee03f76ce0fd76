"""Where records live: an SQLite file, written by one thread and read by many."""
