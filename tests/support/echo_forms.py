"""Echoed prompts as servers return them: one function a behaviour, with its source.

The stand-in's tokens are words with the blank before them; characters of three and four bytes fall
into fragments. A token's log-probability depends on the text up to its end alone, so that the right
values (``likelihood``) are the same in every form.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Body = dict[str, Any]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_WORDS = re.compile(
    r" ?[A-Za-z0-9]+| ?[^\sA-Za-z0-9\u0080-\U0010ffff]| ?[\u0080-\U0010ffff]|\s", re.ASCII
)


class Prompt:
    """A prompt's tokens as bytes, and the one that is generated after them."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = list(parts)
        self.generated = self.expected(len(self.parts))
        self.all = [*self.parts, self.generated]
        checksums, checksum = [], 0
        for part in self.all:
            checksum = zlib.crc32(part, checksum)
            checksums.append(-5 * checksum / 2**32 - 0.01)
        #: None for the first, which nothing precedes.
        self.values: list[float | None] = [None, *checksums[1:]]

    @classmethod
    def of(cls, text: str) -> Prompt:
        parts = []
        for word in _WORDS.findall(text):
            last = word[-1].encode()
            cuts = [0, 1, 3, 4] if len(last) == 4 else [0, 1, 2, 3] if len(last) == 3 else [0, 2]
            first, *rest = (last[a:b] for a, b in pairwise(cuts))
            parts += [word[:-1].encode() + first, *rest]
        assert b"".join(parts) == text.encode()
        return cls(parts)

    def expected(self, count: int) -> bytes:
        """What the stand-in expects after so many tokens: the week goes on, or an A."""
        *_, before, last = (
            "",
            *(part.decode(errors="replace").strip() for part in self.parts[:count][-2:]),
        )
        if last in _DAYS:
            return b","
        if last == "," and before in _DAYS[:-1]:
            return f" {_DAYS[_DAYS.index(before) + 1]}".encode()
        return b"A"


def likelihood(text: str, start: int) -> float:
    """The log-likelihood of the end of a text, from a character on at which a token begins."""
    prompt = Prompt.of(text)
    at, wanted = 0, []
    for part, value in zip(prompt.parts, prompt.values, strict=False):
        if at >= len(text[:start].encode()):
            assert value is not None
            wanted.append(value)
        at += len(part)
    return math.fsum(wanted)


# --- forms


def openai(prompt: Prompt) -> Body:
    """OpenAI's base models: fragments as ``bytes:`` and escapes.

    stanford-crfm/helm, ``basic_metrics.py``, ``convert_tokens_to_text``.
    """
    return _listed(prompt, [_escaped(part) for part in prompt.all])


def vllm(prompt: Prompt) -> Body:
    """vLLM from 0.11 with a model that has a BOS token.

    ``text_offset`` counts its text; the token that completes a character has all of it, and the
    fragments before it are empty. vllm-project/vllm, ``openai/completion/serving.py``
    (``_create_completion_logprobs``) and ``v1/engine/logprobs.py`` (``_correct_decoded_token``).
    """
    return _listed(prompt, ["<|begin_of_text|>", *_held_back(prompt.all)], before=1)


def vllm_fragments(prompt: Prompt) -> Body:
    """vLLM before: U+FFFD for each fragment. ``openai/serving_completion.py``; issue 2706."""
    texts = [re.sub("�+", "�", part.decode(errors="replace")) for part in prompt.all]
    return _listed(prompt, ["<s>", *texts], before=1)


def vllm_vocabulary(prompt: Prompt) -> Body:
    """vLLM up to 0.3: entries of a byte-level vocabulary (``convert_ids_to_tokens``). PR 2918."""
    letters = {byte: chr(byte) for byte in (*range(33, 127), *range(161, 173), *range(174, 256))}
    hidden = [byte for byte in range(256) if byte not in letters]
    letters |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return _listed(prompt, ["".join(letters[byte] for byte in part) for part in prompt.all])


def vllm_sentencepiece(prompt: Prompt) -> Body:
    """The same with a SentencePiece vocabulary, which begins a text with a blank. PR 2918."""
    parts = [piece for part in prompt.parts for piece in _bytes_apart(part)]
    texts = [_byte_token(part).replace(" ", "▁") for part in (*parts, prompt.generated)]
    if len(parts[0]) > 1 or parts[0].isascii():
        texts[0] = f"▁{texts[0]}"
        return _listed(Prompt(parts), ["<s>", *texts], before=1)
    return _listed(Prompt(parts), ["<s>", "▁", *texts], before=2)


def vllm_token_ids(prompt: Prompt) -> Body:
    """vLLM with ``--return-tokens-as-token-ids`` (``format_token_id_placeholder``)."""
    return _listed(prompt, [f"token_id:{zlib.crc32(part) % 50000}" for part in prompt.all])


def sglang(prompt: Prompt) -> Body:
    """SGLang with Llama 2's tokenizer: every token decoded by itself loses its blank; no offsets.

    sgl-project/sglang, ``openai/utils.py`` (``to_openai_style_logprobs``) and
    ``managers/tokenizer_manager.py`` (``detokenize_logprob_tokens``).
    """
    texts = [part.decode(errors="replace") for part in prompt.all]
    body = _listed(prompt, ["<s>", *(text.removeprefix(" ") for text in texts)], before=1)
    return body | {"text_offset": [-1] * len(body["tokens"])}


def sglang_without_texts(prompt: Prompt) -> Body:
    """SGLang where no text is requested for its tokens (``return_text_in_logprobs``)."""
    return sglang(prompt) | {"tokens": [None] * (len(prompt.all) + 1)}


def llama_cpp(prompt: Prompt) -> Body:
    """llama.cpp: ``echo`` is ignored, the generated token alone comes back, in the chat's form.

    ggml-org/llama.cpp issue 27174; EleutherAI/lm-evaluation-harness issue 4158.
    """
    token, value = prompt.generated.decode(), prompt.values[-1]
    entry = {"id": 1, "token": token, "bytes": list(token.encode()), "logprob": value}
    return {"content": [{**entry, "top_logprobs": [entry]}]}


def llama_cpp_python(prompt: Prompt) -> Body:
    """llama-cpp-python with a BOS token: left out, and so is what is no whole character.

    abetlen/llama-cpp-python, ``Llama._create_completion``; recorded from version 0.3.36.
    """
    body = _listed(prompt, [part.decode(errors="ignore") for part in prompt.all])
    return {name: values[:-1] for name, values in body.items()}


def llama_cpp_python_without_bos(prompt: Prompt) -> Body:
    """The same without one: each value is of the row after the token. Recorded from 0.3.36."""
    body = llama_cpp_python(prompt)
    tokens = body["tokens"]
    wrong: list[float | None] = [-6.0 - len(token) / 8 for token in tokens]
    expected = [prompt.expected(n).decode() for n in range(1, len(tokens) + 1)]
    tops = [
        {after: -0.5, token: token_id}
        for after, token, token_id in zip(expected, tokens, wrong, strict=True)
    ]
    return body | {"token_logprobs": [None, *wrong[1:]], "top_logprobs": [None, *tops[1:]]}


def generated_only(prompt: Prompt) -> Body:
    """LMDeploy before it left them out: the generated token alone.

    InternLM/lmdeploy, ``openai/api_server.py`` (``_create_completion_logprobs``).
    """
    text = prompt.generated.decode()
    return {
        "tokens": [text],
        "token_logprobs": [prompt.values[-1]],
        "top_logprobs": [{text: prompt.values[-1]}],
        "text_offset": [0],
    }


def none(prompt: Prompt) -> None:
    """No log-probabilities: text-generation-inference (issue 2211), LMDeploy (``endpoints/completions.py``)."""


def objects(prompt: Prompt) -> Body:
    """An echo in the chat's form, with the bytes of each token."""
    entries = zip(prompt.all, prompt.values, strict=True)
    return {
        "content": [
            {"token": part.decode(errors="replace"), "logprob": logprob, "bytes": list(part)}
            for part, logprob in entries
        ]
    }


def nulls(prompt: Prompt) -> Body:
    """Tokens of the prompt without values: pegainfer-project/pegainfer, PR 64."""
    body = openai(prompt)
    empty = [None] * len(prompt.parts)
    return body | {"token_logprobs": [*empty, prompt.values[-1]]}


def constant(prompt: Prompt) -> Body:
    """Every value 0: ggml-org/llama.cpp issue 27174, "every choice scores 0.0"."""
    return openai(prompt) | {"token_logprobs": [None, *[0.0] * len(prompt.parts)]}


def cut_at_the_left(prompt: Prompt) -> Body:
    """The beginning of the prompt cut off (``truncate_prompt_tokens``)."""
    return {name: values[2:] for name, values in openai(prompt).items()}


FORMS: Mapping[str, Callable[[Prompt], Body | None]] = {
    form.__name__: form
    for form in (
        openai,
        vllm,
        vllm_fragments,
        vllm_vocabulary,
        vllm_sentencepiece,
        vllm_token_ids,
        sglang,
        sglang_without_texts,
        llama_cpp,
        llama_cpp_python,
        llama_cpp_python_without_bos,
        generated_only,
        none,
        objects,
        nulls,
        constant,
        cut_at_the_left,
    )
}

# What servers answer that refuse: status, and message.
REFUSALS: Mapping[str, tuple[int, str]] = {
    # ggml-org/llama.cpp, server-common.cpp, oaicompat_completion_params_parse.
    "llama_cpp_refuses": (500, "Only no echo is supported"),
    # InternLM/lmdeploy, openai/endpoints/completions.py, check_request.
    "lmdeploy_refuses": (
        400,
        "logprobs(1) requested but not enabled logprobs_mode in engine configuration.",
    ),
    # huggingface/transformers, cli/serving/completion.py; recorded from version 5.24.
    "transformers_refuses": (400, "prompt must be a string."),
    "refuses": (400, "echo is not supported"),
}


def _listed(prompt: Prompt, texts: list[str], before: int = 0) -> Body:
    """The lists of the completions API, with so many tokens before the prompt's: the first is null."""
    values = prompt.values
    if before:
        values = [None, *[-2.5] * before, *values[1:]]
    offsets = [0]
    for text in texts[:-1]:
        offsets.append(offsets[-1] + len(text))
    return {
        "tokens": texts,
        "token_logprobs": values,
        "top_logprobs": [
            None if logprob is None else {text: logprob}
            for text, logprob in zip(texts, values, strict=True)
        ],
        "text_offset": offsets,
    }


def _escaped(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in part)


def _bytes_apart(part: bytes) -> list[bytes]:
    try:
        part.decode()
    except UnicodeDecodeError:
        return [bytes([byte]) for byte in part]
    return [part]


def _byte_token(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return f"<0x{part.hex().upper()}>"


def _held_back(parts: Sequence[bytes]) -> list[str]:
    texts, kept = [], b""
    for part in parts:
        kept += part
        try:
            texts.append(kept.decode())
            kept = b""
        except UnicodeDecodeError:
            texts.append("")
    return texts
