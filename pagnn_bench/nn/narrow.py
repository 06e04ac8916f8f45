"""Dense products in bfloat16 for models whose parameters, sums, losses and optimiser stay float32."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def narrow_product(a: Tensor, b: Tensor) -> Tensor:
    """a b with 8 significant bits in both factors; summed in float32, rounded once, returned as float32."""
    return (a.bfloat16() @ b.bfloat16()).float()


class NarrowLinear(nn.Linear):
    """x Wᵀ + b with x and W in bfloat16, the result and the bias in float32; likewise in the backward pass."""

    @classmethod
    def of(cls, layer: nn.Linear) -> NarrowLinear:
        """The same layer, sharing its parameters."""
        narrow = nn.utils.skip_init(cls, layer.in_features, layer.out_features, bias=layer.bias is not None)
        narrow.weight, narrow.bias = layer.weight, layer.bias
        return narrow

    def forward(self, x: Tensor) -> Tensor:
        product = F.linear(x.bfloat16(), self.weight.bfloat16()).float()
        return product if self.bias is None else product + self.bias


def narrow_layers(model: nn.Module) -> None:
    """Make every linear layer inside a model multiply in bfloat16 from now on."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, NarrowLinear.of(child))
