"""Benchmarks of real sessions, relative to a bare upper limit.

Each `bench_…` takes the number of `owners`, the `points` per owner, the `columns` of a point and the number
of `rounds`, where these can be chosen, and `say`, which is called with what is being measured. It returns the
figures under the names of the command line's JSON (docs/results.md).
"""
