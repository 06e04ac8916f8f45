"""The paper's tables from recorded results. Needs neither torch nor Hydra.

results.py    all cells of a store, summarised, named, with the paper's number and a verdict
layout.py     a table as plain data
captions.py   the caption of an accuracy table
accuracy.py   Tables 2 and 3, ours alone or with the paper's
timing.py     seconds per epoch as the paper defines them, and their table
datasets.py   Table 1
render.py     a table as Markdown, LaTeX or HTML
selection.py  which protocol and tables are shown, and the flat records behind them
"""
