"""What vivavoce needs to test the bot of a support desk."""
