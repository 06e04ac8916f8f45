"""``pagnn-bench bench``: how fast this package is, beside a plain torch_geometric loop, in one run on one machine.

reference*.py         the plain loop and its models, as a user would write them
contenders.py         who is measured: ours and the reference on the same graph, mask and protocol
measure.py            round after round over all contenders of a place
child.py              peak memory, and growth, in processes of their own
growth.py             cost against nodes, edges, features, hidden units and seeds
parallel.py           throughput of a whole sweep on all cores, and beside neighbours
document.py           the JSON document that all of them end in
speed.py targets.py   ratios, and what they are to reach
run.py                the modes of the command, each ending in a document
machine.py            what it was measured on
layout*.py figure.py  from a document to a table and a figure; need no torch
"""
