"""Ultra-fine entity typing: the paper's study with 10,331 types."""
