"""Text generation: batches of texts that share prefixes, with recovery from failed batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from collections.abc import Sequence

from torch import Tensor

from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.reasoning_marks import mark_tokens
from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.hf.batching import group_by_prefix
from pytest_llmeval.models.hf.batching import split_batches
from pytest_llmeval.models.hf.decoder import Decoder
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.generate_fallback import GenerateFallback
from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.hf.generation_state import Schedule
from pytest_llmeval.models.hf.generation_state import sampling_key
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.model_limits import KEYS_PER_TOKEN
from pytest_llmeval.models.hf.model_limits import available_memory
from pytest_llmeval.models.hf.model_limits import context_window
from pytest_llmeval.models.hf.model_limits import default_batch_tokens
from pytest_llmeval.models.hf.model_limits import end_tokens
from pytest_llmeval.models.hf.model_limits import error_summary
from pytest_llmeval.models.hf.model_limits import free_memory
from pytest_llmeval.models.hf.model_limits import is_out_of_memory
from pytest_llmeval.models.hf.sampling import choose_tokens
from pytest_llmeval.models.hf.self_check import ForwardPaths
from pytest_llmeval.models.hf.self_check import find_paths
from pytest_llmeval.models.hf.self_check import verify_decoder
from pytest_llmeval.models.stopping import StopWatcher
from pytest_llmeval.models.stopping import split_reply

log = logging.getLogger("pytest_llmeval.models.hf")

# Texts generated at a time. More do not make the matrix products of a CPU faster.
_ROWS = {"cpu": 64}
_ROWS_ELSEWHERE = 256
# Share of the free memory to allocate for the keys and values of texts.
_CACHE_SHARE = 0.5
# Texts per batch of GenerateFallback; a batch takes as long as its longest text.
_FALLBACK_ROWS = 16


class TextEngine:
    """Engine that generates text with one loaded model.

    Every text has its own row after a shared prefix. A finished text is replaced by a waiting one
    at once, so that a long text does not delay the others.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        batch_tokens: int | None = None,
        paths: ForwardPaths | None = None,
        *,
        rows: int | None = None,
    ) -> None:
        """Prepare the encoder and verify the decoder.

        ``batch_tokens``: tokens to compute per batch. ``paths``: result of ``find_paths`` for the
        model. ``rows``: maximum number of texts at a time.
        """
        self._loaded = loaded
        self._device = loaded.device
        self._tokenizer = loaded.tokenizer
        self._budget = batch_tokens or default_batch_tokens(loaded.device)
        self._rows = rows or _ROWS.get(loaded.device.type, _ROWS_ELSEWHERE)
        window = context_window(loaded.model.config, loaded.tokenizer)
        self._encoder = Encoder(loaded.tokenizer, window, loaded.day)
        self._ends = end_tokens(loaded.model, loaded.tokenizer)
        # Decoding skips special tokens.
        self._special: dict[str, int] = {
            token.content: number
            for number, token in loaded.tokenizer.added_tokens_decoder.items()
            if token.special
        }
        # Except the marks at the beginning and the end of reasoning.
        self._marks = {self._special[mark]: mark for mark in mark_tokens(self._special)}
        paths = paths or find_paths(loaded.model, loaded.device)
        self._packed, self._reach = paths.packed, paths.reach
        self._decoder = verify_decoder(loaded.model, loaded.device, paths)
        self._fallback: GenerateFallback | None = None

    def answer(self, requests: Sequence[Request], setup_seconds: float = 0.0) -> Iterator[Response]:
        """Yield one response per request as it is finished.

        ``setup_seconds`` (loading) is divided among the requests, the time for a prefix among the
        requests that share it.
        """
        started = time.perf_counter()
        prompts, refused = self._encoder.encode_prompts(requests)
        texts = [self._generation(requests[prompt.index], prompt) for prompt in prompts]
        batched = [text for text in texts if self._fits(text)]
        others = [text for text in texts if not self._fits(text)]
        each = (setup_seconds + time.perf_counter() - started) / max(1, len(texts))
        yield from refused
        if self._decoder is not None and batched:
            for text in self._decode_batched(self._decoder, self._assign_prefixes(batched)):
                yield self._response(requests[text.prompt.index], text, each)
        for text in self._generate_fallback(others):
            yield self._response(requests[text.prompt.index], text, each)

    def _fits(self, text: Generation) -> bool:
        longest = len(text.prompt.tokens) + text.prompt.limit
        return self._decoder is not None and longest <= self._reach

    def _generation(self, request: Request, prompt: EncodedPrompt) -> Generation:
        decoding = request.decoding
        # A stop string that is a special token is detected as that token.
        special = {self._special[word] for word in decoding.stop if word in self._special}
        watcher = StopWatcher(self._decode, decoding.stop, opened=prompt.opened)
        return Generation(prompt, decoding, self._ends | special, watcher, sampling_key(request))

    def _decode(self, tokens: Sequence[int]) -> str:
        """Decode tokens without special tokens, except reasoning marks, and without clean-up."""
        parts: list[str] = []
        begin = 0
        for place in [*(i for i, token in enumerate(tokens) if token in self._marks), len(tokens)]:
            if place > begin:
                parts.append(
                    self._tokenizer.decode(
                        tokens[begin:place],
                        skip_special_tokens=True,
                        clean_up_tokenization_spaces=False,
                    )
                )
            if place < len(tokens):
                parts.append(self._marks[tokens[place]])
            begin = place + 1
        return "".join(parts)

    # --- batched decoding

    def _assign_prefixes(self, generations: Sequence[Generation]) -> list[Generation]:
        """Set ``shared`` of every text and sort texts with the same prefix together.

        Prefixes are chosen over distinct prompts: samples of an item count once.
        """
        assert self._packed is not None
        distinct = {text.prompt.tokens: text.prompt for text in generations}
        shared: dict[tuple[int, ...], int] = {}
        for part in group_by_prefix(list(distinct.values())):
            live = self._packed.live_length(part.questions[0].shareable)
            prefix = part.prefix(live, alone=len(distinct) == 1)
            shared.update((prompt.tokens, len(prefix)) for prompt in part.questions)
        for text in generations:
            text.shared = shared[text.prompt.tokens]
        # Early requests are still answered early.
        first: dict[tuple[int, ...], int] = {}
        for place, text in enumerate(generations):
            first.setdefault(text.prefix, place)
        return sorted(generations, key=lambda text: first[text.prefix])

    def _decode_batched(
        self, decoder: Decoder, generations: Sequence[Generation]
    ) -> Iterator[Generation]:
        """Generate the texts; yield each when it is done."""
        assert self._packed is not None
        pads = self._packed.pads
        if decoder.is_open:
            # The responses of the previous call have not all been consumed.
            decoder = decoder.new_empty()

        def size(text: Generation) -> int:
            # With padding, every text also has a copy of the prefix's keys.
            own = text.unshared_length
            return max(own, len(text.all_tokens) // KEYS_PER_TOKEN) if pads else own

        schedule = Schedule(generations, self._rows, size, self._budget, padded=pads)
        self._open(decoder, schedule)
        try:
            while schedule.waiting or schedule.running:
                if batch := schedule.next_batch():
                    yield from self._begin(decoder, schedule, batch)
                else:
                    self._step(decoder, schedule)
                for row, text in schedule.release():
                    decoder.drop(row)
                    yield text
        finally:
            decoder.close()

    def _open(self, decoder: Decoder, schedule: Schedule) -> None:
        """Allocate a row per waiting text, or fewer if memory is short."""
        capacity = max(text.capacity for text in schedule.waiting)
        rows = min(schedule.rows, len(schedule.waiting))
        memory = available_memory(self._device)
        if memory is not None:
            rows = min(rows, int(memory * _CACHE_SHARE) // (capacity * decoder.bytes_per_token))
        schedule.rows = max(1, rows)
        while True:
            try:
                decoder.open(schedule.rows, capacity)
                break
            except Exception as error:
                if schedule.rows == 1 or not is_out_of_memory(error):
                    raise
            free_memory(self._device)
            schedule.rows //= 2
        log.info("%d texts at a time, with up to %d unshared tokens", schedule.rows, capacity)

    def _begin(
        self, decoder: Decoder, schedule: Schedule, batch: list[Generation]
    ) -> Iterator[Generation]:
        """Compute prompts and choose the first token of each; yield the texts that fail."""
        if not self._read_prefix(decoder, schedule, batch):
            return
        started = time.perf_counter()
        try:
            logits = decoder.begin([text.all_tokens for text in batch], batch[0].prefix)
            tokens = _choose(logits, batch)
            failure = None
        except Exception as error:
            failure, memory = error_summary(error), is_out_of_memory(error)
        # Outside the handler: the error's traceback keeps the failed batch's tensors alive.
        if failure is None:
            schedule.running += batch
            _extend(batch, tokens, started)
            return
        decoder.truncate(len(schedule.running))
        if memory:
            free_memory(self._device)
        if len(batch) > 1:
            middle = len(batch) // 2
            yield from self._begin(decoder, schedule, batch[:middle])
            yield from self._begin(decoder, schedule, batch[middle:])
        elif memory and schedule.running:
            schedule.requeue(batch)
            schedule.rows = len(schedule.running)
        else:
            batch[0].error = failure
            yield batch[0]

    def _read_prefix(
        self, decoder: Decoder, schedule: Schedule, batch: Sequence[Generation]
    ) -> bool:
        """Compute the prefix of a batch; if that fails, requeue the texts without it.

        Returns False if the batch was requeued.
        """
        packed, prefix = self._packed, batch[0].prefix
        assert packed is not None
        if packed.live_length(prefix) == len(prefix):
            return True
        same = [*batch, *(text for text in schedule.waiting if text.prefix == prefix)]
        started = time.perf_counter()
        try:
            packed.read(prefix)
            failure = None
        except Exception as error:
            failure = error_summary(error)
        if failure is None:
            each = (time.perf_counter() - started) / len(same)
            for text in same:
                text.seconds += each
            return True
        log.warning("cannot compute the shared prefix (%s): continuing without it", failure)
        packed.forget()
        schedule.requeue(batch)
        schedule.requeue_running()
        decoder.close()
        free_memory(self._device)
        for text in same:
            text.shared = 0
        self._open(decoder, schedule)
        return False

    def _step(self, decoder: Decoder, schedule: Schedule) -> None:
        """Generate the next token of every running text."""
        running = schedule.running
        started = time.perf_counter()
        try:
            tokens = _choose(decoder.step([text.tokens[-1] for text in running]), running)
            failure = None
        except Exception as error:
            failure, memory = error_summary(error), is_out_of_memory(error)
        if failure is None:
            _extend(running, tokens, started)
            return
        if memory:
            free_memory(self._device)
        if len(running) == 1:
            running[0].error = failure
            return
        # Restart all texts from their current tokens with half the rows: a text is an error only if
        # it fails as a single row.
        schedule.rows = max(1, len(running) // 2)
        schedule.requeue_running()
        decoder.truncate(0)
        log.warning("%s: continuing with %d texts at a time", failure, schedule.rows)

    # --- fallback: transformers' generate

    def _generate_fallback(self, generations: Sequence[Generation]) -> Iterator[Generation]:
        if not generations:
            return
        if self._fallback is None:
            self._fallback = GenerateFallback(self._loaded.model, self._device)
        least = -(-self._budget // _FALLBACK_ROWS) if self._fallback.pads else self._budget
        for batch in split_batches(
            generations,
            lambda text: max(len(text.prompt.tokens), least),
            lambda: self._budget,
            padded=True,
        ):
            yield from self._finish(self._fallback, batch)

    def _finish(
        self, fallback: GenerateFallback, batch: Sequence[Generation]
    ) -> Iterator[Generation]:
        """Generate a batch; halve it if it fails, so that only single texts become errors."""
        started = time.perf_counter()
        try:
            fallback.finish(batch)
            failure = None
        except Exception as error:
            failure, memory = error_summary(error), is_out_of_memory(error)
        each = (time.perf_counter() - started) / len(batch)
        for text in batch:
            text.seconds += each
        if failure is not None and memory:
            free_memory(self._device)
        unfinished = [text for text in batch if not text.done]
        yield from (text for text in batch if text.done)
        if len(unfinished) == 1:
            unfinished[0].error = failure
            yield unfinished[0]
        elif unfinished:
            middle = len(unfinished) // 2
            yield from self._finish(fallback, unfinished[:middle])
            yield from self._finish(fallback, unfinished[middle:])

    # ---

    def _response(self, request: Request, text: Generation, each: float) -> Response:
        parts = split_reply(
            self._decode(text.content), text.decoding.stop, opened=text.prompt.opened
        )
        failed = text.error is not None
        # A text that ends inside its reasoning counts as truncated, whatever ended it.
        finish = "stop" if parts.stopped else text.finish if parts.closed else "length"
        return Response(
            request.id,
            text=None if failed else parts.answer,
            reasoning=None if failed else parts.reasoning,
            finish_reason=None if failed else finish,
            prompt_tokens=len(text.prompt.tokens),
            completion_tokens=len(text.tokens),
            dropped_shots=text.prompt.dropped_shots,
            seconds=text.seconds + each,
            error=text.error,
            sample=request.sample,
            arm=request.arm,
        )


def _choose(logits: Tensor, generations: Sequence[Generation]) -> list[int | None]:
    return choose_tokens(
        logits,
        [text.decoding for text in generations],
        [text.next_random() for text in generations],
    )


def _extend(
    generations: Sequence[Generation], tokens: Sequence[int | None], started: float
) -> None:
    """Add to every text its token and its share of the time."""
    for text, token in zip(generations, tokens, strict=True):
        text.add(token)
    each = (time.perf_counter() - started) / len(generations)
    for text in generations:
        text.seconds += each
