"""The API, one router for each kind of thing."""
