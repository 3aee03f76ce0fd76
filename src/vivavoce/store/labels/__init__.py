"""Human labels of conversations, and the agreement of judges with them."""
