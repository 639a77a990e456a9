"""Timings, each beside something well known, measured in the same run.

``python -m benchmarks`` runs all of them and prints one table; ``python -m benchmarks NAME ...``
runs a selection; ``--write`` also keeps the table in docs/benchmarks/cpu.md.

To add one: write a function that returns a list of :class:`benchmarks.harness.Row`, decorate it
with ``@benchmark``, and put it into a module here whose name starts with ``bench_``.
"""
