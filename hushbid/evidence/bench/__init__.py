"""Measurements of the real thing beside its bare ceiling.

A `bench_…` takes the number of `owners`, the `points` of each, the `columns` of a point and how many `rounds`
there are, as far as it lets them be chosen, and `say`, which is told what is being measured. It returns the
figures under the names of the command line's JSON (docs/results.md).
"""
