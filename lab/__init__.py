"""The laboratory: benchmarks of speed, and the experiments that the documentation's figures come from.

It uses the product, and nothing of the product imports it: its verbs are entry points (`hushbid.evidence`).
"""
