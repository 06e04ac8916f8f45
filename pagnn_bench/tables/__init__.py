"""The paper's tables from recorded results. Needs neither torch nor Hydra.

variants.py   what sets cells of the same name apart
results.py    all cells of a store, summarised, named, with the paper's number and a verdict
timing.py     seconds per epoch, as the paper defines them
layout.py     a table as plain data: the paper's layout, ours beside the paper's, timing, datasets
render.py     a table as Markdown, LaTeX or HTML
command.py    ``pagnn-bench tables``
"""
