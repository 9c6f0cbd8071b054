"""Weights laid out for oneDNN: the same products, or none of it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import onednn_linear


@pytest.fixture
def layers(torch: Any) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(48, 96), torch.nn.ReLU(), torch.nn.Linear(96, 7, bias=False)
    ).eval()


def works(torch: Any, layers: Any) -> bool:
    return onednn_linear._works(layers[0])


def test_products_stay_the_same(torch: Any, layers: Any) -> None:
    if not works(torch, layers):
        pytest.skip("this torch does not lay out weights")
    inputs = [
        torch.randn(shape) for shape in ((1, 1, 48), (1, 33, 48), (4, 9, 48), (5, 48), (1, 0, 48))
    ]
    inputs.append(torch.randn(48, 20).T)
    with torch.inference_mode():
        expected = [layers(x) for x in inputs]
        assert onednn_linear.prepack(layers) == 2
        for x, before in zip(inputs, expected, strict=True):
            after = layers(x)
            assert after.shape == before.shape
            assert torch.allclose(after, before, atol=1e-5)
    assert layers[0].weight.shape == (96, 48)


def test_hooks_still_run(torch: Any, layers: Any) -> None:
    seen: list[int] = []
    onednn_linear.prepack(layers)
    layers[2].register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[-1]))
    layers(torch.randn(2, 48))
    assert seen == [96]


def test_layers_of_other_kinds_are_left_alone(torch: Any, layers: Any) -> None:
    class Own(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x) + 1

    layers.append(Own(7, 7))
    assert onednn_linear.prepack(layers) in (0, 2)
    assert "forward" not in vars(layers[3])
    assert onednn_linear.prepack(layers.to(torch.bfloat16)) == 0


def test_without_memory_or_with_other_results_nothing_is_done(
    torch: Any, layers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(onednn_linear, "available_memory", lambda device: 1000)
        assert onednn_linear.prepack(layers) == 0
    monkeypatch.setattr(
        onednn_linear, "_product", lambda x, weight, *rest: x[..., :1].expand(1, 3, 96)
    )
    assert onednn_linear.prepack(layers) == 0
    monkeypatch.setattr(onednn_linear, "_product", None)
    assert onednn_linear.prepack(layers) == 0
    assert "forward" not in vars(layers[0])
