"""Where the predictions and data sets of the studies come from, and how to know them again."""
