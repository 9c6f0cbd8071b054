"""Answers a list of requests for text: which texts are worked on together, at what cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from collections.abc import Sequence

from torch import Tensor

from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.reasoning_marks import mark_tokens
from pytest_llmeval.models.hf.batching import Opening
from pytest_llmeval.models.hf.batching import batches
from pytest_llmeval.models.hf.batching import group
from pytest_llmeval.models.hf.decoder import Decoder
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.generate_fallback import WholeTexts
from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.hf.generation_state import Schedule
from pytest_llmeval.models.hf.generation_state import key_of
from pytest_llmeval.models.hf.loading import Loaded
from pytest_llmeval.models.hf.model_limits import KEYS_PER_TOKEN
from pytest_llmeval.models.hf.model_limits import available
from pytest_llmeval.models.hf.model_limits import default_budget
from pytest_llmeval.models.hf.model_limits import ends_of
from pytest_llmeval.models.hf.model_limits import free
from pytest_llmeval.models.hf.model_limits import is_out_of_memory
from pytest_llmeval.models.hf.model_limits import reason_of
from pytest_llmeval.models.hf.model_limits import window_of
from pytest_llmeval.models.hf.sampling import Watch
from pytest_llmeval.models.hf.sampling import choose
from pytest_llmeval.models.hf.sampling import parts_of
from pytest_llmeval.models.hf.self_check import Paths
from pytest_llmeval.models.hf.self_check import find_paths
from pytest_llmeval.models.hf.self_check import proven_decoder

log = logging.getLogger("pytest_llmeval.models.hf")

# Texts worked on at a time. More raise the speed of a CPU's matrix products no further.
_ROWS = {"cpu": 64}
_ROWS_ELSEWHERE = 256
# Of the free memory, the part that may be set aside for the texts' keys and values.
_FOR_KEYS = 0.5
# Texts that transformers' own loop makes at a time; one long one holds up all.
_WHOLE_ROWS = 16


class TextEngine:
    """Text with one loaded model.

    Every text grows in a row of its own behind a prefix that it shares with others. A finished
    one makes room for the next at once, so that a long one holds up nobody.
    """

    def __init__(
        self,
        loaded: Loaded,
        batch_tokens: int | None = None,
        paths: Paths | None = None,
        *,
        rows: int | None = None,
    ) -> None:
        """``paths``: found before, by another engine with the same model.

        ``rows``: most texts that are worked on at a time.
        """
        self._loaded = loaded
        self._device = loaded.device
        self._tokenizer = loaded.tokenizer
        self._budget = batch_tokens or default_budget(loaded.device)
        self._rows = rows or _ROWS.get(loaded.device.type, _ROWS_ELSEWHERE)
        window = window_of(loaded.model.config, loaded.tokenizer)
        self._encoder = Encoder(loaded.tokenizer, window, loaded.day)
        self._ends = ends_of(loaded.model, loaded.tokenizer)
        # Special tokens have no text where it is decoded.
        self._special: dict[str, int] = {
            token.content: number
            for number, token in loaded.tokenizer.added_tokens_decoder.items()
            if token.special
        }
        # Where reasoning begins and ends must be seen nevertheless.
        self._marks = {self._special[mark]: mark for mark in mark_tokens(self._special)}
        paths = paths or find_paths(loaded.model, loaded.device)
        self._packed, self._reach = paths.packed, paths.reach
        self._decoder = proven_decoder(loaded.model, loaded.device, paths)
        self._whole: WholeTexts | None = None

    def answer(self, requests: Sequence[Request], setup_seconds: float = 0.0) -> Iterator[Response]:
        """Yield a response a request, as it is finished.

        ``setup_seconds`` (loading) is spread over the requests, as is what a prefix costs over
        those that share it.
        """
        started = time.perf_counter()
        openings, refused = self._encoder.openings(requests)
        generations = [self._generation(requests[one.index], one) for one in openings]
        together = [one for one in generations if self._fits(one)]
        apart = [one for one in generations if not self._fits(one)]
        each = (setup_seconds + time.perf_counter() - started) / max(1, len(generations))
        yield from refused
        if self._decoder is not None and together:
            for one in self._grow(self._decoder, self._sharing(together)):
                yield self._response(requests[one.opening.index], one, each)
        for one in self._make_whole(apart):
            yield self._response(requests[one.opening.index], one, each)

    def _fits(self, one: Generation) -> bool:
        longest = len(one.opening.tokens) + one.opening.limit
        return self._decoder is not None and longest <= self._reach

    def _generation(self, request: Request, opening: Opening) -> Generation:
        decoding = request.decoding
        # A stop string that is a special token is found as that token.
        special = {self._special[word] for word in decoding.stop if word in self._special}
        watch = Watch(self._decode, decoding.stop, opened=opening.opened)
        return Generation(opening, decoding, self._ends | special, watch, key_of(request))

    def _decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out; no blank before a comma is taken away."""
        found: list[str] = []
        begin = 0
        for place in [*(i for i, token in enumerate(tokens) if token in self._marks), len(tokens)]:
            if place > begin:
                part = tokens[begin:place]
                found.append(
                    self._tokenizer.decode(
                        part, skip_special_tokens=True, clean_up_tokenization_spaces=False
                    )
                )
            if place < len(tokens):
                found.append(self._marks[tokens[place]])
            begin = place + 1
        return "".join(found)

    # --- texts side by side

    def _sharing(self, generations: Sequence[Generation]) -> list[Generation]:
        """The texts with what each shares; those with the same prefix follow one another.

        The samples of an item count as one text.
        """
        assert self._packed is not None
        distinct = {one.opening.tokens: one.opening for one in generations}
        shared: dict[tuple[int, ...], int] = {}
        for part in group(list(distinct.values())):
            live = self._packed.shared_with_live(part.questions[0].shareable)
            prefix = part.prefix(live, alone=len(distinct) == 1)
            shared.update((opening.tokens, len(prefix)) for opening in part.questions)
        for one in generations:
            one.shared = shared[one.opening.tokens]
        # Early requests are still answered early.
        first: dict[tuple[int, ...], int] = {}
        for place, one in enumerate(generations):
            first.setdefault(one.prefix, place)
        return sorted(generations, key=lambda one: first[one.prefix])

    def _grow(self, decoder: Decoder, generations: Sequence[Generation]) -> Iterator[Generation]:
        """Yield every text when it is done."""
        assert self._packed is not None
        pads = self._packed.pads
        if decoder.is_open:
            # A caller takes another call's responses before it has taken all of the last.
            decoder = decoder.another()

        def size(one: Generation) -> int:
            # Where texts are padded, each also gets a copy of the prefix's keys.
            return max(one.own, len(one.read) // KEYS_PER_TOKEN) if pads else one.own

        schedule = Schedule(generations, self._rows, size, self._budget, padded=pads)
        self._open(decoder, schedule)
        try:
            while schedule.waiting or schedule.running:
                if batch := schedule.next():
                    yield from self._begin(decoder, schedule, batch)
                else:
                    self._step(decoder, schedule)
                for row, one in schedule.release():
                    decoder.drop(row)
                    yield one
        finally:
            decoder.close()

    def _open(self, decoder: Decoder, schedule: Schedule) -> None:
        """Make room for as many rows as there are texts for, and memory."""
        capacity = max(one.capacity for one in schedule.waiting)
        rows = min(schedule.rows, len(schedule.waiting))
        memory = available(self._device)
        if memory is not None:
            rows = min(rows, int(memory * _FOR_KEYS) // (capacity * decoder.bytes_per_token))
        schedule.rows = max(1, rows)
        while True:
            try:
                decoder.open(schedule.rows, capacity)
                break
            except Exception as error:
                if schedule.rows == 1 or not is_out_of_memory(error):
                    raise
            free(self._device)
            schedule.rows //= 2
        log.info("%d texts at a time, of up to %d tokens of their own", schedule.rows, capacity)

    def _begin(
        self, decoder: Decoder, schedule: Schedule, batch: list[Generation]
    ) -> Iterator[Generation]:
        """Read prompts and choose the first token of each; yield the texts that fail."""
        if not self._read_prefix(decoder, schedule, batch):
            return
        started = time.perf_counter()
        try:
            logits = decoder.begin([one.read for one in batch], batch[0].prefix)
            tokens = _choose(logits, batch)
            failure = None
        except Exception as error:
            failure, memory = reason_of(error), is_out_of_memory(error)
        # Outside the handler: the error's traceback keeps the failed batch's tensors alive.
        if failure is None:
            schedule.running += batch
            _extend(batch, tokens, started)
            return
        decoder.keep(len(schedule.running))
        if memory:
            free(self._device)
        if len(batch) > 1:
            middle = len(batch) // 2
            yield from self._begin(decoder, schedule, batch[:middle])
            yield from self._begin(decoder, schedule, batch[middle:])
        elif memory and schedule.running:
            schedule.put_back(batch)
            schedule.rows = len(schedule.running)
        else:
            batch[0].error = failure
            yield batch[0]

    def _read_prefix(
        self, decoder: Decoder, schedule: Schedule, batch: Sequence[Generation]
    ) -> bool:
        """Whether the batch can go on; where its prefix cannot be read, it waits without one."""
        packed, prefix = self._packed, batch[0].prefix
        assert packed is not None
        if packed.shared_with_live(prefix) == len(prefix):
            return True
        same = [*batch, *(one for one in schedule.waiting if one.prefix == prefix)]
        started = time.perf_counter()
        try:
            packed.read(prefix)
            failed = None
        except Exception as error:
            failed = reason_of(error)
        if failed is None:
            each = (time.perf_counter() - started) / len(same)
            for one in same:
                one.seconds += each
            return True
        log.warning("the shared prefix could not be computed (%s); going on without", failed)
        packed.forget()
        schedule.put_back(batch)
        schedule.stop()
        decoder.close()
        free(self._device)
        for one in same:
            one.shared = 0
        self._open(decoder, schedule)
        return False

    def _step(self, decoder: Decoder, schedule: Schedule) -> None:
        """One more token for every running text."""
        running = schedule.running
        started = time.perf_counter()
        try:
            tokens = _choose(decoder.step([one.tokens[-1] for one in running]), running)
            failure = None
        except Exception as error:
            failure, memory = reason_of(error), is_out_of_memory(error)
        if failure is None:
            _extend(running, tokens, started)
            return
        if memory:
            free(self._device)
        if len(running) == 1:
            running[0].error = failure
            return
        # Begun again from what they have, and fewer at a time, so that only what fails alone
        # is an error.
        schedule.rows = max(1, len(running) // 2)
        schedule.stop()
        decoder.keep(0)
        log.warning("%s; going on with %d texts at a time", failure, schedule.rows)

    # --- texts by transformers' own loop

    def _make_whole(self, generations: Sequence[Generation]) -> Iterator[Generation]:
        if not generations:
            return
        if self._whole is None:
            self._whole = WholeTexts(self._loaded.model, self._device)
        least = -(-self._budget // _WHOLE_ROWS) if self._whole.pads else self._budget
        for batch in batches(
            generations,
            lambda one: max(len(one.opening.tokens), least),
            lambda: self._budget,
            padded=True,
        ):
            yield from self._finish(self._whole, batch)

    def _finish(self, whole: WholeTexts, batch: Sequence[Generation]) -> Iterator[Generation]:
        """Finish a batch; one that fails is halved, and only what fails alone is an error."""
        started = time.perf_counter()
        try:
            whole.finish(batch)
            failure = None
        except Exception as error:
            failure, memory = reason_of(error), is_out_of_memory(error)
        each = (time.perf_counter() - started) / len(batch)
        for one in batch:
            one.seconds += each
        if failure is not None and memory:
            free(self._device)
        left = [one for one in batch if not one.done]
        yield from (one for one in batch if one.done)
        if len(left) == 1:
            left[0].error = failure
            yield left[0]
        elif left:
            middle = len(left) // 2
            yield from self._finish(whole, left[:middle])
            yield from self._finish(whole, left[middle:])

    # ---

    def _response(self, request: Request, one: Generation, each: float) -> Response:
        parts = parts_of(self._decode(one.content), one.decoding.stop, opened=one.opening.opened)
        failed = one.error is not None
        # What ends within its reasoning was cut off, wherever it ends.
        finish = "stop" if parts.stopped else one.finish if parts.closed else "length"
        return Response(
            request.id,
            text=None if failed else parts.answer,
            reasoning=None if failed else parts.reasoning,
            finish_reason=None if failed else finish,
            prompt_tokens=len(one.opening.tokens),
            completion_tokens=len(one.tokens),
            dropped_shots=one.opening.dropped_shots,
            seconds=one.seconds + each,
            error=one.error,
            sample=request.sample,
            arm=request.arm,
        )


def _choose(logits: Tensor, generations: Sequence[Generation]) -> list[int | None]:
    return choose(
        logits, [one.decoding for one in generations], [one.draw() for one in generations]
    )


def _extend(
    generations: Sequence[Generation], tokens: Sequence[int | None], started: float
) -> None:
    """Give every text its token and its share of the time."""
    for one, token in zip(generations, tokens, strict=True):
        one.add(token)
    each = (time.perf_counter() - started) / len(generations)
    for one in generations:
        one.seconds += each
