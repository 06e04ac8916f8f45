"""The networks that can follow a method which fills in missing entries, besides our own GCN."""

from __future__ import annotations

from typing import Any

from pagnn_bench.config.errors import RequestError, refuse
from pagnn_bench.methods.base import OWN_NETWORK
from pagnn_bench.methods.module import ModuleRecipe

# As in their papers, as far as that fits a hidden layer of the width that all methods share. GraphSAGE does not
# normalise the hidden layer, as in torch_geometric. GAT has eight heads, which share the width, ELU, and dropout also
# on the attention; the heads of the last layer are averaged, as in its paper for Pubmed.
BACKBONES: dict[str, tuple[str, dict[str, Any]]] = {
    "sage": ("pagnn_bench.nn.sage.SAGE", {}),
    "gat": ("torch_geometric.nn.GAT", {"heads": 8, "act": "elu"}),
}


def backbone(network: str, hidden: int, layers: int, dropout: float) -> ModuleRecipe:
    """The recipe of a network, given by its short name or as the user's own module."""
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
