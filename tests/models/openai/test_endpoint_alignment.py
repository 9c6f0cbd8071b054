"""Which returned tokens are the choice's: every answer is right, and what is open is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.models.openai.echo_alignment import Token
from pytest_llmeval.models.openai.echo_alignment import find_tail

CONTEXT, WHOLE = "The Answer:", "The Answer: A"


def tail(texts: list[str], text: str = WHOLE, start: int = len(CONTEXT)) -> tuple[int, int]:
    return find_tail([Token(text, -1.0) for text in texts], text, start)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["The", " Answer", ":", " A"], (3, 4)),
        (["The", " Answer", ":", " A", " A"], (3, 4)),
        (["The", " Answer", ":", " ", "A", "\n"], (3, 5)),
        # Special tokens before the text, also two of them, and left out of the texts.
        (["<s>", "The", " Answer", ":", " A", "."], (4, 5)),
        (["<|begin_of_text|>", "The", " Answer", ":", " A", "."], (4, 5)),
        (["<｜begin▁of▁sentence｜>", "The", " Answer", ":", " A", "."], (4, 5)),
        (["[BOS]", "The", " Answer", ":", " A", "."], (4, 5)),
        (["[gMASK]", "<sop>", "The", " Answer", ":", " A", "."], (5, 6)),
        (["", "The", " Answer", ":", " A", "."], (4, 5)),
        # A blank before the text, and vocabularies.
        ([" The", " Answer", ":", " A"], (3, 4)),
        (["▁The", "▁Answer", ":", "▁A", "</s>"], (3, 4)),
        (["<s>", "▁", "The", "▁Answer", ":", "▁A", "</s>"], (5, 6)),
        (["<s>", "▁The", "▁Answer", ":", "▁A", "</s>"], (4, 5)),
        (["The", "ĠAnswer", ":", "ĠA", "Ċ"], (3, 4)),
        # Decoded one by one: blanks lost, also a token that is nothing but a blank.
        (["<s>", "The", "Answer", ":", "A", "B"], (4, 5)),
        (["<s>", "The", "Answer", ":", "", "A", "B"], (4, 6)),
    ],
)
def test_the_choice_among_plain_tokens(texts: list[str], expected: tuple[int, int]) -> None:
    assert tail(texts) == expected


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["A"], "1 token in place of the prompt's: 'A'"),
        ([], "0 tokens in place of the prompt's"),
        (["The", " Answer", ": A", "."], "': A' spans the end of the prompt"),
        (["The", " Answer", ":"], "the 3 tokens end where the prompt continues with ' A'"),
        (
            [" Answer", ":", " A"],
            "token 1 of 3 is ' Answer' where the prompt continues with 'The A",
        ),
        (["The", " Question", ":", " A"], "token 2 of 4 is ' Question' where .* ' Answer: A'"),
        (["The", " Answer", ":", " A", "B", "C"], "more than one token after the prompt"),
        (["token_id:4", "token_id:5", "token_id:6"], r"ids in place of .* \('token_id:4', …\)"),
        # A system prompt is no special token.
        (["<s>", "system", "\n", "The", " Answer", ":", " A"], "where the prompt continues with"),
        (["<a>", "<b>", "<c>", "The", " Answer", ":", " A"], "where the prompt continues with"),
    ],
)
def test_an_echo_that_differs_from_the_prompt_is_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        tail(texts)


def test_a_special_token_that_was_sent_is_text() -> None:
    text = "<s>The Answer: A"
    assert tail(["<s>", "The", " Answer", ":", " A"], text, 14) == (4, 5)
    assert tail(["<s>", "<s>", "The", " Answer", ":", " A"], text, 14) == (5, 6)


def test_a_choice_without_a_prompt() -> None:
    assert tail(["<s>", "yes", "!"], "yes", 0) == (1, 2)
    assert tail(["yes", "!"], "yes", 0) == (0, 1)
    with pytest.raises(ValueError, match="the choice is empty"):
        tail(["yes"], "yes", 3)


@pytest.mark.parametrize(
    "fragments",
    [
        [" �", "�", "�", "本", ":"],
        [" 日�", "�", ":"],
        ["", "", " 日", "", "本", ":"],
        ["bytes: \\xe6", "bytes:\\x97\\xa5", "本", ":"],
        ["<0x20>", "<0xE6>", "<0x97>", "<0xA5>", "本", ":"],
        [" \ud83d", "\udd25", "本", ":"],
        [" ", "", "", "本", ":"],
    ],
)
def test_fragments_of_characters_before_the_choice(fragments: list[str]) -> None:
    texts = ["<s>", "Q", *fragments, " A", "B"]
    assert tail(texts, "Q 日本: A", 5) == (len(texts) - 2, len(texts) - 1)


def test_bytes_of_tokens_that_the_server_reports() -> None:
    parts = [b"Q", b" \xe6\x97", b"\xa5", b":", b" \xe6", b"\x9c\xac", b"!"]
    tokens = [Token(part.decode(errors="replace"), -1.0, part) for part in parts]
    assert find_tail(tokens, "Q 日: 本", 4) == (4, 6)
    # vLLM's chat lists the bytes of the placeholder.
    tokens = [Token(token.text, -1.0, token.text.encode()) for token in tokens]
    assert find_tail(tokens, "Q 日: 本", 4) == (4, 6)


def test_fragments_of_the_choice_itself() -> None:
    assert tail(["Q", ":", "", "", " 日", "本", ""], "Q: 日本", 2) == (2, 6)
    assert tail(["Q", ":", " �", "�", "�", "x"], "Q: 日", 2) == (2, 5)
    with pytest.raises(ValueError, match="leave open which tokens belong"):
        # The last may be a fragment of the choice, or of what was generated.
        tail(["Q", ":", " �", "�", "�"], "Q: 日", 2)


def test_a_fragment_across_the_join_is_refused() -> None:
    with pytest.raises(ValueError, match="spans the end"):
        tail(["Q", "日本", "!"], "Q日本", 2)
    with pytest.raises(ValueError, match="leave open which tokens belong"):
        tail(["Q", "�", "�", "�", "�", "!"], "Q日本", 2)


def test_empty_tokens_between_two_characters_need_ids_or_bytes() -> None:
    with pytest.raises(ValueError, match="tokens without text may belong"):
        tail(["Q", "日", "", "本", "!"], "Q日本", 2)
    assert tail(["Q", "", "", "日", "", "本", "!"], "Q日本", 2) == (4, 6)


def test_a_composed_form_is_the_same_text() -> None:
    text = "Cafe\u0301: A"
    assert tail(["Caf", "é", ":", " A"], text, 6) == (3, 4)
    assert tail(["Caf", "e", "\u0301", ":", " A"], text, 6) == (4, 5)
    with pytest.raises(ValueError, match="where the prompt continues with"):
        tail(["Caf", "e", ":", " A"], text, 6)


# --- any text, cut anywhere, in any spelling


def held_back(parts: list[bytes]) -> list[str]:
    texts, kept = [], b""
    for part in parts:
        kept += part
        try:
            text = kept.decode()
        except UnicodeDecodeError:
            texts.append("")
        else:
            texts.append(text)
            kept = b""
    return texts


def escaped(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in part)


SPELLINGS = {
    "replaced": lambda parts: [part.decode(errors="replace") for part in parts],
    "escaped": lambda parts: [escaped(part) for part in parts],
    "held back": held_back,
    "ignored": lambda parts: [part.decode(errors="ignore") for part in parts],
    "blank lost": lambda parts: [part.decode(errors="replace").removeprefix(" ") for part in parts],
}


def cut(text: bytes, data: st.DataObject) -> list[bytes]:
    places = data.draw(st.sets(st.integers(1, len(text))))
    return [text[a:b] for a, b in pairwise(sorted({0, *places, len(text)}))]


TEXT = st.text(alphabet="ab :\n(é日本\U0001f600", min_size=1, max_size=8)


@settings(max_examples=600, deadline=None)
@given(
    TEXT,
    TEXT,
    st.sampled_from(sorted(SPELLINGS)),
    st.sampled_from(["", "<s>"]),
    st.sampled_from(["", "x", "A", " ", "日", "�", "<0xE6>", None]),
    st.data(),
)
def test_an_answer_is_right_however_tokens_are_cut_and_spelled(
    context: str, choice: str, spelling: str, bos: str, generated: str | None, data: st.DataObject
) -> None:
    before, after = (cut(text.encode(), data) for text in (context, choice))
    parts = before + after
    texts = [bos] * bool(bos) + SPELLINGS[spelling](parts) + [generated] * (generated is not None)
    tokens = [Token(text, -1.0) for text in texts]
    expected = (bool(bos) + len(before), bool(bos) + len(parts))
    whole = all(part.decode(errors="ignore").encode() == part for part in parts)
    provable = (whole and spelling != "blank lost") or spelling == "escaped"
    if provable and generated and context.strip():
        assert find_tail(tokens, context + choice, len(context)) == expected
        return
    try:
        tail_logprobs = find_tail(tokens, context + choice, len(context))
    except ValueError:
        return
    assert tail_logprobs == expected
