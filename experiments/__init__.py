"""The paper's studies, each one command: ``python -m experiments.NAME [--quick]``."""
