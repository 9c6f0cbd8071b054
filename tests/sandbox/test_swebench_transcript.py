"""The output of a trial, cut at its marks: however it is split, and however much there is."""

from __future__ import annotations

import itertools
import time
import tracemalloc

from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.sandbox.swebench.transcript import BoundedText
from pytest_llmeval.sandbox.swebench.transcript import Transcript

_NONCE = "c0ffee"
_PIECES = st.sampled_from(
    [
        *("x", "\n", "y\n", f"{_NONCE} start\n", f"{_NONCE} failed patch no\n"),
        *(f"\n{_NONCE} end ", f"\n{_NONCE} end setup failed\n", f"\n{_NONCE}", " end ", _NONCE),
    ]
)


def _split(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


@given(st.lists(_PIECES, max_size=12).map("".join), st.lists(st.integers(0, 400), max_size=20))
@example(f"{_NONCE} start\n\n{_NONCE} end \n", list(range(40)))
def test_a_stream_is_cut_at_its_marks(text: str, cuts: list[int]) -> None:
    transcript = Transcript(_NONCE, 10_000, 10_000)
    for part in _split(text.encode(), cuts):
        transcript.add(part)
    transcript.close()
    before, start, after = text.partition(f"{_NONCE} start\n")
    log, end, rest = after.partition(f"\n{_NONCE} end ")
    remark, newline, _ = rest.partition("\n")
    assert transcript.started == bool(start)
    assert transcript.ended == bool(end and newline)
    assert transcript.log == log
    assert transcript.remark == remark.strip()
    assert transcript.preface == ("" if start else before)
    failed = not start and f"{_NONCE} failed patch no" in before.splitlines()
    assert transcript.failure() == (("patch", "no") if failed else None)


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(0, 50), st.integers(1, 50))
def test_head_and_tail_are_kept(parts: list[bytes], head: int, tail: int) -> None:
    text = BoundedText(head, tail)
    for part in parts:
        text.add(part)
    whole = b"".join(parts)
    if not text.dropped:
        assert text.text() == whole.decode(errors="replace")
        return
    gap = f"\n[{text.dropped} bytes left out]\n"
    kept = len(whole) - text.dropped
    assert tail <= kept - head < tail + 30
    beginning, end = whole[:head], whole[text.dropped + head :]
    assert text.text() == (beginning + gap.encode() + end).decode(errors="replace")


def test_a_long_stream_takes_bounded_memory_and_linear_time() -> None:
    part = b"x" * 65_536

    def seconds(parts: int) -> float:
        transcript = Transcript(_NONCE, 1_000_000, 1_000_000)
        transcript.add(f"{_NONCE} start\n".encode())
        began = time.process_time()
        for _ in range(parts):
            transcript.add(part)
        elapsed = time.process_time() - began
        transcript.add(f"\n{_NONCE} end \n".encode())
        assert transcript.ended
        assert transcript.dropped + 2_000_000 <= parts * len(part) < transcript.dropped + 2_200_000
        return elapsed

    tracemalloc.start()
    seconds(3_200)  # 200 MB
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    short, long = min(seconds(800) for _ in range(3)), min(seconds(3_200) for _ in range(3))
    assert long < 4 * short * 2.5 + 0.05


def test_an_end_without_an_end_is_bounded() -> None:
    """Untrusted code that has read the nonce writes a remark that never ends."""
    transcript = Transcript(_NONCE, 1_000, 1_000)
    transcript.add(f"{_NONCE} start\n\n{_NONCE} end ".encode())
    assert not transcript.ended
    for _ in range(100):
        transcript.add(b"x" * 1_000)
    assert transcript.ended
    assert len(transcript.remark) == 2_000
