"""What a page shows, and its templates: the server's pages and the files that are shared are made of the same."""
