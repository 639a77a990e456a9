"""A calibrated classifier whose classes differ in difficulty: what a confident reference does."""
