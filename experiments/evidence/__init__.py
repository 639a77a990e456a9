"""Does the verdict keep its word? Simulated predictions whose truth is known."""
