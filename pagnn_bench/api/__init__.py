"""The Python API, and what it shares with the command line.

Import it from the package: ``from pagnn_bench import run, compare, apply, load_graph, draw_mask``.
"""
