"""Real classifiers: what alternating normalization and its peers do to each of them."""
