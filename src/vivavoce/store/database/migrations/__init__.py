"""How the tables came to be what they are; each file in `versions` is one step and is never changed once released."""
