"""Tools of the tester, one kind a file."""
