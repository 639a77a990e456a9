"""Remedies in the words of the command line, where those of the library name Python arguments."""

REMEDIES = {
    "row_sum": "If these are logits, pass --logits when you tune; if they were rounded, divide "
    "each row by its sum.",
    "negative": "If these are logits, pass --logits when you tune.",
    "outside_unit": "If these are logits, pass --logits when you tune.",
    "one_label_per_row": "For a 0/1 matrix of several labels per row, pass --multilabel labelwise "
    "or --multilabel pairs.",
}
