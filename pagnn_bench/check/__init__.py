"""``pagnn-bench check-device``: whether a device computes what the CPU computes, and how fast.

words.py                    draws every random number on the CPU, so that both devices see the same ones
cases.py                    what is trained: every method, on the built-in graph
observe.py                  a short training, and the numbers to compare
compare.py                  the differences between two observations, and their limits
cost.py                     times, synchronisations, peak memory
trials.py                   whole trials of Cora, compared with the committed ones
run.py                      all steps, collected in a document
layout.py                   from the document to tables and a verdict
"""
