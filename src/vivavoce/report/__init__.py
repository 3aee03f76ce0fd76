"""What people read: tables, comparisons, files."""
