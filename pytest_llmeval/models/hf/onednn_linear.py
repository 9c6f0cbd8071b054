"""Linear layers on a CPU, computed by oneDNN with weights laid out for it beforehand.

Torch gives float32 products to MKL, which lays out the weights anew in every call and, on
processors of other makes, does not use all they have. With weights laid out once, products of a
few rows or of hundreds take a half to a quarter of the time (one row: the same; AMD EPYC).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pytest_llmeval.models.hf.model_limits import available

log = logging.getLogger("pytest_llmeval.models.hf")

# Of the free memory, the part that the second copy of the weights may take.
_SHARE = 0.25
# What rounding explains, relative to the largest value of a product.
_ROUNDING = 1e-4

# What torch's own compiler uses; known by these names only.
_lay_out: Any = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
_product: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def lay_out(model: Any) -> int:
    """Lay out the weights of a model's float32 layers on the CPU; how many layers were.

    The weights stay as they are beside the copies. Nothing is done where memory is short, or
    where a layer's results differ.
    """
    layers = [
        module
        for module in model.modules()
        if type(module) is torch.nn.Linear
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
    ]
    size = sum(layer.weight.numel() * layer.weight.element_size() for layer in layers)
    memory = available(torch.device("cpu"))
    if not layers or not torch._C._has_mkldnn or not _works(layers[0]):
        return 0
    if memory is not None and size > memory * _SHARE:
        log.info("no memory for a second copy of %.1f GB of weights: slower products", size / 1e9)
        return 0
    for layer in layers:
        layer.forward = partial(_forward, layer, _laid_out(layer))  # type: ignore[method-assign]
    return len(layers)


def _laid_out(layer: torch.nn.Linear) -> Tensor:
    with torch.no_grad():
        found: Tensor = _lay_out(layer.weight.detach())
    return found


def _forward(layer: torch.nn.Linear, weight: Tensor, x: Tensor) -> Tensor:
    if x.numel() == 0 or x.dtype != torch.float32:
        return F.linear(x, layer.weight, layer.bias)
    found: Tensor = _product(x.contiguous(), weight, layer.bias, "none", [], "")
    return found


def _works(layer: torch.nn.Linear) -> bool:
    """Whether the functions are there and compute what torch computes."""
    if _lay_out is None or _product is None:
        return False
    x = torch.linspace(-1, 1, 3 * layer.in_features).view(1, 3, -1)
    try:
        with torch.inference_mode():
            found = _forward(layer, _laid_out(layer), x)
            expected = F.linear(x, layer.weight, layer.bias)
    except Exception as error:
        log.info("weights cannot be laid out for oneDNN: %s", error)
        return False
    return bool(((found - expected).abs().max() <= _ROUNDING * expected.abs().max()).item())
