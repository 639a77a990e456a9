"""How many labels it takes to know whether an adjustment helps, asked for and at random."""
