"""Blurred images: the gain against the share of rows in doubt."""
