import torch
from torch import nn


class ModelNew(nn.Module):
    """Calls torch's own operator; no kernel was written."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.nn.functional.gelu(x)
