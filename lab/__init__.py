"""The laboratory: benchmarks of speed, and the experiments that the documentation's figures come from.

Nothing of the product imports it: its verbs are entry points (`hushbid.evidence`).
"""
