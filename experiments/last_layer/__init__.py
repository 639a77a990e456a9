"""Alternating normalization as the last layer of a network, during training."""
