"""The paper's Monte Carlo study of one iteration, and what it did not show."""
