"""What people say of conversations, and how far judges agree with them."""
