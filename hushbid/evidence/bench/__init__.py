"""Measurements of the real thing beside its bare ceiling.

A `bench_…` takes the sizes of `session.write_cluster`, and `say`, which is told what is being measured. It
returns the figures under the names of the command line's JSON (docs/results.md).
"""
