"""What a message holds, as a page shows it: Markdown, code, JSON, pictures, sound, reasoning."""
