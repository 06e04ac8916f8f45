"""``pagnn-bench bench``: how fast this package is, compared with a plain torch_geometric loop on the same machine.

reference*.py         the plain loop and its models, as a user would write them
contenders.py         what is measured: ours and the reference on the same graph, mask and protocol
measure.py            rounds over all contenders of a place
child.py              peak memory, and growth, in separate processes
growth.py             cost against nodes, edges, features, hidden units and seeds
parallel.py           throughput of a whole sweep on all cores, and beside busy neighbours
document.py           the JSON document that each measurement produces
speed.py targets.py   ratios and their targets
run.py                the modes of the command, each returning a document
machine.py            the machine it was measured on
layout*.py figure.py  from a document to a table and a figure; need no torch
"""
