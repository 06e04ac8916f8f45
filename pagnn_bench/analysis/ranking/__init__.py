"""Which method to use: several methods on one graph, ranked. Needs neither torch nor Hydra.

order.py        who is ahead, and who cannot be told apart from the best
advice.py       which method to use and how sure that is, in words
table.py        the ranking as a table and as records
comparison.py   all of it together, with what was left out
"""

from pagnn_bench.analysis.ranking.comparison import Comparison, remarks_of
from pagnn_bench.analysis.ranking.order import Contender, Place, Ranking, rank

__all__ = ["Comparison", "Contender", "Place", "Ranking", "rank", "remarks_of"]
