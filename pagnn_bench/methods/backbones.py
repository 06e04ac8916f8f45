"""The networks that can stand behind a method which fills in missing entries, besides the GCN of its own."""

from __future__ import annotations

from typing import Any

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.methods.base import OWN_NETWORK
from pagnn_bench.methods.module import ModuleRecipe

# As their papers have them, where that fits a hidden layer of the width that all methods share. GraphSAGE without its
# normalisation of the hidden layer, as in torch_geometric. GAT with eight heads, which share the width, ELU, and
# dropout on the attention, too; the heads of the last layer are averaged, as its paper does for Pubmed.
BACKBONES: dict[str, tuple[str, dict[str, Any]]] = {
    "sage": ("pagnn_bench.nn.sage.SAGE", {}),
    "gat": ("torch_geometric.nn.GAT", {"heads": 8, "act": "elu"}),
}


def backbone(network: str, hidden: int, layers: int, dropout: float) -> ModuleRecipe:
    """The recipe of a network by its short name or as a module of the user's own."""
    names = ", ".join((OWN_NETWORK, *BACKBONES))
    if not isinstance(network, str) or ("." not in network and network not in BACKBONES):
        refuse("method.network", network, f"choose one of {names}, or a torch module such as mine.MyGNN")
    path, args = BACKBONES.get(network, (network, {}))
    if hidden % args.get("heads", 1):
        heads = args["heads"]
        raise RequestError(
            f"method.hidden={hidden}: {network} has {heads} heads; give a multiple of {heads}."
        )
    return ModuleRecipe("method.network", path, hidden, layers, dropout, args)
