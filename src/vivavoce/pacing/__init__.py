"""How fast and how long: limiter, retry, breaker, budget."""
