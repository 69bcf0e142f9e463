"""Benchmarks of real sessions, relative to a bare upper limit.

Each `bench_…` takes sizes (`owners`, `points` per owner, `columns` of a point, `rounds`) and `say`, called
with what is being measured. It returns the figures under the names of the command line's JSON
(docs/results.md).
"""
