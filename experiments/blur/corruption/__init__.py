"""Corrupted text: the blur study on language."""
