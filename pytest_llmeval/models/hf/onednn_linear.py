"""Float32 linear layers on a CPU, computed by oneDNN with prepacked weights.

Torch computes float32 products with MKL, which packs the weights in every call and does not fully
use processors of vendors other than Intel. With prepacked weights, products of a few rows or of
hundreds take a half to a quarter of the time (one row: the same; measured on AMD EPYC).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pytest_llmeval.models.hf.model_limits import available_memory

log = logging.getLogger("pytest_llmeval.models.hf")

# Share of the free memory that the packed copy of the weights may take.
_SHARE = 0.25
# Tolerance for rounding, relative to the largest value of a product.
_ROUNDING = 1e-4

# Operators that torch's compiler uses; they have no public names.
_pack: Any = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
_product: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def prepack(model: Any) -> int:
    """Prepack the weights of a model's float32 linear layers on the CPU.

    Returns the number of prepacked layers: 0 if memory is short, or if the results of the first
    layer differ from torch's. The original weights are kept.
    """
    layers = [
        module
        for module in model.modules()
        if type(module) is torch.nn.Linear
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
    ]
    size = sum(layer.weight.numel() * layer.weight.element_size() for layer in layers)
    memory = available_memory(torch.device("cpu"))
    if not layers or not torch._C._has_mkldnn or not _works(layers[0]):
        return 0
    if memory is not None and size > memory * _SHARE:
        log.info(
            "not enough memory for a packed copy of %.1f GB of weights: matrix products are slower",
            size / 1e9,
        )
        return 0
    for layer in layers:
        layer.forward = partial(_forward, layer, _packed_weight(layer))  # type: ignore[method-assign]
    return len(layers)


def _packed_weight(layer: torch.nn.Linear) -> Tensor:
    with torch.no_grad():
        packed: Tensor = _pack(layer.weight.detach())
    return packed


def _forward(layer: torch.nn.Linear, weight: Tensor, x: Tensor) -> Tensor:
    if x.numel() == 0 or x.dtype != torch.float32:
        return F.linear(x, layer.weight, layer.bias)
    output: Tensor = _product(x.contiguous(), weight, layer.bias, "none", [], "")
    return output


def _works(layer: torch.nn.Linear) -> bool:
    """Return True if the operators exist and their results agree with torch's."""
    if _pack is None or _product is None:
        return False
    x = torch.linspace(-1, 1, 3 * layer.in_features).view(1, 3, -1)
    try:
        with torch.inference_mode():
            actual = _forward(layer, _packed_weight(layer), x)
            expected = F.linear(x, layer.weight, layer.bias)
    except Exception as error:
        log.info("cannot prepack weights for oneDNN: %s", error)
        return False
    return bool(((actual - expected).abs().max() <= _ROUNDING * expected.abs().max()).item())
