"""A tiny torch_geometric dataset, found by its class path like a user's own."""

from __future__ import annotations

import torch
from torch_geometric.data import Data, InMemoryDataset


class Tiny(InMemoryDataset):
    """Forty nodes on a ring; ``name`` chooses a peculiarity."""

    processed_file_names = "data.pt"

    def __init__(self, root: str, name: str = "plain"):
        if name == "broken":
            raise ConnectionError("no network")
        self.name = name
        super().__init__(root)
        self.load(self.processed_paths[0])

    def process(self) -> None:
        node = torch.arange(40)
        data = Data(x=torch.eye(40), edge_index=torch.stack([node, (node + 1) % 40]), y=node % 2)
        if self.name == "masks":
            data.train_mask, data.val_mask, data.test_mask = node < 4, (node >= 4) & (node < 10), node >= 15
        elif self.name == "many_masks":
            data.train_mask = data.val_mask = data.test_mask = torch.ones(40, 10, dtype=torch.bool)
        elif self.name == "sparse":
            data.x = data.x.to_sparse()
        elif self.name == "column":
            data.y = data.y[:, None]
        elif self.name == "multilabel":
            data.y = torch.ones(40, 3)
        elif self.name == "gaps":  # as GraphLand has them: NaN in x, and in y for unlabelled nodes
            data.x = torch.where(node[:, None] % 3 == node % 3, torch.nan, data.x)
            data.y = torch.where(node < 4, torch.nan, data.y.float())
        elif self.name == "half":
            data.y = data.y / 2
        elif self.name == "no_features":
            data.x = None
        self.save([data], self.processed_paths[0])
