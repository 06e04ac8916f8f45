"""pagnn-bench: train PaGNN and its rivals on graphs with missing node attributes, reproducibly.

The functions of :mod:`pagnn_bench.api` can be imported from here. They bring Hydra, pandas and torch with them, so they
are looked up when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagnn_bench.analysis.ranking import Comparison
    from pagnn_bench.api.applied import Applied, apply
    from pagnn_bench.api.comparison import compare
    from pagnn_bench.api.graphs import draw_mask, load_graph
    from pagnn_bench.api.running import run
    from pagnn_bench.config.errors import RequestError
    from pagnn_bench.engine.outcome import Unfinished

__version__ = "0.1.0"

_HOMES = {
    "Applied": "pagnn_bench.api.applied",
    "Comparison": "pagnn_bench.analysis.ranking",
    "RequestError": "pagnn_bench.config.errors",
    "Unfinished": "pagnn_bench.engine.outcome",
    "apply": "pagnn_bench.api.applied",
    "compare": "pagnn_bench.api.comparison",
    "draw_mask": "pagnn_bench.api.graphs",
    "load_graph": "pagnn_bench.api.graphs",
    "run": "pagnn_bench.api.running",
}
__all__ = [
    "Applied",
    "Comparison",
    "RequestError",
    "Unfinished",
    "__version__",
    "apply",
    "compare",
    "draw_mask",
    "load_graph",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
