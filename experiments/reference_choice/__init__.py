"""How to choose the reference: which rows, how many, and how they count."""
