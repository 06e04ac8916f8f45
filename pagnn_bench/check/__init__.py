"""``pagnn-bench check-device``: whether a device computes what the CPU computes, and how fast.

words.py                    every random number drawn on the CPU, so that both devices see the same ones
cases.py                    what is trained: every method, on the built-in graph
observe.py                  a short training, and the numbers to compare
compare.py                  how far two observations are apart, and how far they may be
cost.py                     times, synchronisations, peak memory
trials.py                   whole trials of Cora beside the committed ones
run.py                      all of it, ending in a document
layout.py                   from the document to tables and a verdict
"""
