"""From probabilities to decisions: the rule that a score, or a table of costs, asks for."""
