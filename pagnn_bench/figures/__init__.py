"""Figures from recorded results. Needs matplotlib, neither torch nor Hydra.

canvas.py   a figure as panels; as files, and as SVG for a page with hover values in the page's colours
plots.py    what is drawn: accuracy, difference to the paper, time, convergence
"""
