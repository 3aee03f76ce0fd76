"""Pages and their templates, for the server and for files to share."""
