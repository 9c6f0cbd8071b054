"""Small random models and a small tokenizer, built here: nothing is downloaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from support.text_generation import LENGTH

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
CORPUS = (
    "The following are multiple choice questions (with answers) about anatomy.\n\n"
    "Which of these bones is longest?\nA. femur\nB. tibia\nC. radius\nD. ulna\nAnswer: A\n\n"
    "Answer: A Answer: B Answer: C Answer: D Answer: A Answer: B Answer: C Answer: D\n"
    "Two plus two makes\nA. three\nB. four\nAnswer: B The sky is blue and the sea is deep.\n"
)
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


@pytest.fixture(scope="session")
def torch() -> Any:
    """Torch, on one thread; tests that need it are skipped where it is not installed."""
    module = pytest.importorskip("torch", reason="the extra hf is not installed")
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    module.set_num_threads(1)
    return module


@pytest.fixture(scope="session")
def tokenizer(torch: Any) -> Any:
    """A byte-level BPE tokenizer of a few hundred tokens. It adds <s> by itself."""
    from tokenizers import Tokenizer
    from tokenizers import decoders
    from tokenizers import models
    from tokenizers import pre_tokenizers
    from tokenizers import processors
    from tokenizers import trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([CORPUS], trainer)
    raw.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@pytest.fixture(scope="session")
def build(torch: Any, tokenizer: Any) -> Any:
    """``build("Llama", sliding_window=16)``: a model with random weights, float32."""
    import transformers

    def build(family: str, **settings: Any) -> Any:
        config = getattr(transformers, f"{family}Config")(
            **{**SIZES, "vocab_size": len(tokenizer), **settings}
        )
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for parameter in model.parameters():
            parameter.data.normal_(0, 0.2)
        return model.eval()

    return build


@pytest.fixture(scope="session")
def llama(build: Any) -> Any:
    return build("Llama", max_position_embeddings=512)


@pytest.fixture(scope="session")
def folder(llama: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local folder as ``hf:`` takes it."""
    path: Path = tmp_path_factory.mktemp("models") / "tiny"
    llama.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def requests() -> list[Request]:
    """Ten questions behind the same shots; letters for nine of them, texts for one."""
    shots = tuple((f"Is {n} less than five?\nA. yes\nB. no\nAnswer:", "A") for n in "1234")
    description = "The following are questions about numbers.\n\n"
    made = []
    for number in range(10):
        question = f"Is {number * 7919} " + "very " * number + "large?\nA. yes\nB. no\nAnswer:"
        choices = ("A", "B", "C", "D") if number != 4 else ("yes it is", "yes", "not at all")
        made.append(Request(f"q-{number}", Prompt(description, shots, question), choices))
    return made


@pytest.fixture
def make_text_engine(torch: Any, llama: Any, tokenizer: Any) -> Any:
    """``make_text_engine(model, rows=8)``: an engine with the tiny model, or another."""
    from pytest_llmeval.models.hf.generation import TextEngine
    from pytest_llmeval.models.hf.loading import LoadedModel

    def make(model: Any = llama, own_tokenizer: Any = tokenizer, **settings: Any) -> TextEngine:
        return TextEngine(LoadedModel(model, own_tokenizer, torch.device("cpu")), **settings)

    return make


@pytest.fixture
def text_requests(requests: list[Request]) -> list[Request]:
    """Ten prompts behind the same shots, and three with other beginnings."""
    decoding = Decoding(max_tokens=LENGTH)
    shared = [replace(request, choices=(), decoding=decoding) for request in requests]
    own = [
        Request(f"own-{n}", Prompt("", (), f"{word} " * (n + 1)), decoding=decoding)
        for n, word in enumerate(("Once", "sea", "The sky is blue and"))
    ]
    return [*shared[:4], own[0], *shared[4:], *own[1:]]
