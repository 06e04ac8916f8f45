"""The package from Python, and what its calls share with the command line.

Use the names of the package itself: ``from pagnn_bench import run, compare, apply, load_graph, draw_mask``.
"""
