"""Classifiers of scikit-learn on its own data sets, beside its own calibrators."""
