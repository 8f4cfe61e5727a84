"""The bars of the product as ratios: ours, the bound, the rivals, side by side in one run. ``python -m benchmarks``.

One module a bar; rivals in ``rivals``; ``measuring`` runs contenders in fresh processes, ``table`` judges and prints.
Nothing here is a test, and no absolute figure decides anything (docs/benchmarks.md).
"""
