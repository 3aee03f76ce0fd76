"""Models of providers that speak a wire of their own, each way to them in one file and loaded when it is needed."""
