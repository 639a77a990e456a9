"""The predictions that ship with the package: naive Bayes on CLINC150's imbalanced split."""
