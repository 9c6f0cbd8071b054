"""Loading of weights and tokenizers through transformers."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from pytest_llmeval.core import ModelError
from pytest_llmeval.models.hf.model_limits import xdist_worker
from pytest_llmeval.models.hf.onednn_linear import prepack
from pytest_llmeval.models.hf.spec import DATE_FUNCTION
from pytest_llmeval.models.hf.spec import DEFAULT_DATE
from pytest_llmeval.models.hf.spec import HfSpec
from pytest_llmeval.models.hf.weights_fingerprint import dtype_used
from pytest_llmeval.sources.hub import hub_access

log = logging.getLogger("pytest_llmeval.models.hf")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Model in evaluation mode on its device, with its tokenizer.

    ``day``: the date for chat templates that print one.
    """

    model: Any
    tokenizer: Any
    device: torch.device
    day: date = DEFAULT_DATE


def load(spec: HfSpec) -> LoadedModel:
    """Load the weights and the tokenizer of a spec.

    Under pytest-xdist, worker i uses CUDA device i modulo the number of devices, or the i-th group
    of ``devices`` GPUs; CPU threads are divided among the workers. Raises ModelError, in one line,
    if loading fails.
    """
    # The tokenizers library deadlocks in forked children of a process in which it has used threads.
    # It reads the variable on first use; a value set by the user is kept.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    started = time.perf_counter()
    try:
        devices = choose_devices(spec)
        with _no_progress_bars():
            options = {"dtype": getattr(torch, dtype_used(spec)), **_distribution(devices)}
            model, tokenizer = _load(spec, options)
        if len(devices) == 1:
            model.to(devices[0])
        else:
            _check_distribution(spec, model)
        device = model.get_input_embeddings().weight.device
    except (ModelError, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ModelError(
            f"{spec.text}: cannot be loaded: {type(error).__name__}: {reason}"
        ) from error
    model.eval()
    model.requires_grad_(False)
    prepack(model)
    if spec.day and DATE_FUNCTION not in str(tokenizer.chat_template):
        log.warning("%s: the chat template writes no date: date has no effect", spec.text)
    names = ", ".join(map(str, devices))
    log.info("%s: weights on %s after %.2f s", spec.text, names, time.perf_counter() - started)
    return LoadedModel(model, tokenizer, device, spec.day or DEFAULT_DATE)


def choose_devices(spec: HfSpec) -> list[torch.device]:
    """Return the devices of the spec, else a CUDA device if available, else the CPU.

    On a CPU, also limits the threads of an xdist worker to its share. Raises ModelError for devices
    that this machine does not have.
    """
    number, workers = xdist_worker()
    if spec.devices > 1:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        needed = spec.devices * workers
        if needed > count:
            each = f" for each of {workers} workers" if workers > 1 else ""
            raise ModelError(
                f"{spec.text}: {spec.devices} GPUs{each} are needed; this machine has {count}"
            )
        first = number * spec.devices
        return [torch.device("cuda", first + place) for place in range(spec.devices)]
    return [_choose_device(spec, number, workers)]


def _choose_device(spec: HfSpec, number: int, workers: int) -> torch.device:
    name = spec.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        if workers > 1:
            torch.set_num_threads(max(1, _available_cpus() // workers))
        return torch.device("cpu")
    if name == "mps":
        if not torch.backends.mps.is_available():
            raise ModelError(f"{spec.text}: this machine has no device mps")
        return torch.device("mps")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cuda" and count:
        return torch.device("cuda", number % count)
    device = torch.device(name)
    if device.index is None or device.index >= count:
        raise ModelError(f"{spec.text}: no device {name}; this machine has {count} CUDA devices")
    return device


def _distribution(devices: Sequence[torch.device]) -> dict[str, Any]:
    """Return the options with which transformers distributes layers evenly; none for one device."""
    if len(devices) == 1:
        return {}
    free = {device.index: int(torch.cuda.mem_get_info(device)[0]) for device in devices}
    return {"device_map": "balanced", "max_memory": free}


def _check_distribution(spec: HfSpec, model: Any) -> None:
    """Raise ModelError if a layer is not on a GPU, so that every step would copy it there."""
    places = getattr(model, "hf_device_map", {})  # absent if one device has all layers
    if {"cpu", "disk"} & set(places.values()):
        raise ModelError(
            f"{spec.text}: the weights do not fit on {spec.devices} GPUs: use more devices or"
            " another dtype"
        )


def _available_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load(spec: HfSpec, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return model and tokenizer; ``options``: arguments of ``from_pretrained``."""
    if spec.kind == "gguf":
        return _load_gguf(Path(spec.target), options)
    revision = {"revision": spec.revision} if spec.revision else {}
    transformers = _transformers()
    with hub_access() if spec.kind == "hub" else contextlib.nullcontext() as unreachable:
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(spec.target, **revision)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                spec.target, **options, **revision
            )
        except OSError as error:
            if unreachable is None:
                raise
            reason = f"it is not in the hub's cache, and {unreachable}"
            raise ModelError(f"{spec.text}: cannot be loaded: {reason}") from error
    return model, tokenizer


def _transformers() -> Any:
    # Any: transformers is annotated only in part.
    return importlib.import_module("transformers")


def _load_gguf(path: Path, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Load model and tokenizer of a GGUF file, dequantised.

    ``from_pretrained(gguf_file=…)`` needs accelerate, parses the header of the file three times and
    builds the table of tensor names once per submodule. Calling its parts with both cached takes
    4 s instead of 13 s for 135 M parameters.
    """
    transformers = _transformers()
    reading: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    with _cached_gguf_header(reading):
        where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        config = transformers.AutoConfig.from_pretrained(**where)
        with torch.device("meta"):
            shape = transformers.AutoModelForCausalLM.from_config(config)
        tensors = reading.load_gguf_checkpoint(
            str(path), return_tensors=True, model_to_load=shape, torch_dtype=options["dtype"]
        )["tensors"]
    model = type(shape).from_pretrained(None, config=config, state_dict=tensors, **options)
    return model, tokenizer


@contextlib.contextmanager
def _cached_gguf_header(reading: Any) -> Iterator[None]:
    """Cache the header of a GGUF file, parse it faster, and hide the progress bar.

    ``reading``: transformers' module for GGUF files.
    """
    gguf: Any = importlib.import_module("gguf")
    reader: Any = importlib.import_module("gguf.gguf_reader")
    numpy: Any = importlib.import_module("numpy")
    # The reader takes millions of slices of the mapped file; slices of a plain array take a third
    # of the time.
    plain = SimpleNamespace(**vars(numpy))
    plain.memmap = lambda *args, **options: numpy.asarray(numpy.memmap(*args, **options))
    parse = reading.load_gguf_checkpoint
    header = functools.lru_cache(1)(parse)

    def parse_once(path: str, return_tensors: bool = False, **options: Any) -> Any:
        if return_tensors:
            return parse(path, return_tensors=True, **options)
        # Callers remove entries from these dictionaries, but never modify the lists in them.
        return {name: dict(part) for name, part in header(str(path)).items()}

    with (
        mock.patch.object(reading, "tqdm", lambda tensors, **_: tensors),
        mock.patch.object(reading, "load_gguf_checkpoint", parse_once),
        mock.patch.object(reader, "np", plain),
        mock.patch.object(gguf, "GGUFReader", functools.lru_cache(1)(gguf.GGUFReader)),
        mock.patch.object(
            gguf, "get_tensor_name_map", functools.lru_cache(4)(gguf.get_tensor_name_map)
        ),
    ):
        yield


@contextlib.contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Disable the progress bars of transformers."""
    bars: Any = importlib.import_module("transformers.utils.logging")
    was_on = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            bars.enable_progress_bar()
