"""Search for items in documents against comparing all words with all words."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.overlap.index import build_index
from pytest_llmeval.overlap.index import window_hashes
from pytest_llmeval.overlap.report import GPT3
from pytest_llmeval.overlap.report import PALM
from pytest_llmeval.overlap.report import FileMatch
from pytest_llmeval.overlap.report import IndexedItem
from pytest_llmeval.overlap.report import merged
from pytest_llmeval.overlap.search import PASSAGE
from pytest_llmeval.overlap.search import Search
from pytest_llmeval.overlap.search import item_text
from pytest_llmeval.overlap.words import is_boundary
from pytest_llmeval.overlap.words import split_words
from support import overlap_brute_force
from support.overlap_brute_force import Overlap
from support.overlap_brute_force import overlaps
from support.paths import REPOSITORY

ORACLES = REPOSITORY.parent / "shared" / "reference" / "contamination_oracles.json"


def searched(items, documents):
    """Search, as the brute force returns it."""
    search = Search(build_index([items]))
    for number, document in enumerate(documents, start=1):
        search.add(number, (document,))
    search.finish()
    return {
        item: Overlap(frozenset(k for ends in seen for k in range(*ends)), match.words)
        for item, seen, match in search.matches()
    }


# Few words, so that texts repeat themselves and each other; separators of all kinds.
def texts(most):
    word = st.sampled_from(["a", "b", "of", "Of", "über", "x1", "中", "あ"])
    separator = st.sampled_from([" ", "-", "\n", "  ", "’"])
    return st.lists(st.tuples(word, separator), max_size=most).map(
        lambda pairs: "".join(word + gap for word, gap in pairs)
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(texts(30), min_size=1, max_size=6), st.lists(texts(60), max_size=4))
def test_search_equals_brute_force(items, documents):
    documents += items[:1] + [f"z {item} z" for item in items[1:2]]
    assert searched(items, documents) == overlaps(items, documents)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40))
def test_long_documents_are_cut_without_a_loss(seed, vocabulary):
    random_words = random.Random(seed)
    names = [f"w{k}" for k in range(vocabulary)]
    text = random_words.choices(names, k=900)
    items = [" ".join(text[k : k + 12]) for k in random_words.sample(range(880), 5)]
    document = " ".join(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_llmeval.overlap.search.BLOCK", 100)
        cut = searched(items, [document])
    assert cut == searched(items, [document]) == overlaps(items, [document])


@given(st.text(max_size=80))
def test_words_equal_those_of_the_definition(text):
    composed = item_text(text, ())
    words = split_words(composed)
    expected = overlap_brute_force.words(text)
    cut = [composed[a:b] for a, b in zip(words.starts, words.ends, strict=True)]
    assert [overlap_brute_force.words(word) for word in cut] == [[word] for word in expected]
    # Equal words have equal hashes, different words different ones.
    assert len(set(words.hashes.tolist())) == len(set(expected))
    assert len(set(zip(words.hashes.tolist(), expected, strict=True))) == len(set(expected))


@given(st.text(max_size=30), st.integers(0, 30))
def test_no_word_is_on_both_sides_of_a_boundary(text, place):
    words = split_words(text)
    inside = any(a < place < b for a, b in zip(words.starts, words.ends, strict=True))
    assert is_boundary(text, place) == (not inside)


def test_windows_of_all_short_texts():
    for size in range(12):
        words = np.arange(1, size + 1, dtype=np.uint64)
        assert len(window_hashes(words)) == max(0, size - 7)


def test_the_order_of_words_changes_the_hash():
    words = split_words("a b c d e f g h b a c d e f g h").hashes
    hashes = window_hashes(words)
    assert hashes[0] != hashes[8]


@pytest.mark.skipif(not ORACLES.exists(), reason="no exact numbers")
def test_exact_numbers():
    for case in json.loads(ORACLES.read_text())["overlap"]:
        search = Search(build_index([[case["item"]]]))
        for number, document in enumerate(case["documents"], start=1):
            search.add(number, (document,))
        search.finish()
        matches = {
            f"i{number}": FileMatch(seen, match.words, match.place, match.passage)
            for number, seen, match in search.matches()
        }
        item = IndexedItem("i0", "s", case["words"], case["windows"], judged=True)
        part = merged("b", "h", [item], 8, [("f", matches)])
        if not matches:
            assert case["windows_seen"] == case["longest"] == 0, case["name"]
            continue
        match = part.matches["i0"]
        assert (match.windows_seen, match.longest) == (case["windows_seen"], case["longest"])
        assert Fraction(match.windows_seen, match.windows) == Fraction(case["palm"])
        assert Fraction(match.words_covered, match.words) == Fraction(case["llama3"])
        assert (match.longest >= GPT3) == case["gpt3_13gram"]
        assert (match.windows_share >= PALM) == case["palm_70"]


def test_wording_of_many_items_lengthens_a_match_and_makes_none():
    frame = "which of the following statements about the planet is true "
    items = [f"{frame} alpha{k} beta{k} gamma{k}" for k in range(3)]
    assert searched(items, [frame]) == {}
    # With a word of its own, the match begins at the first word of the frame.
    (item,) = searched(items, [f"x {frame} alpha1 y"]).items()
    assert item == (1, Overlap(frozenset(range(4)), 11))
    # Two items may share a window.
    assert searched(items[:2], [frame]).keys() == {0, 1}


def test_a_window_that_an_item_repeats_is_its_own():
    item = "one two three four five six seven eight " * 4
    assert searched([item], [item])[0].longest == 32


def test_items_without_a_window_of_their_own_are_not_judged():
    same = "the same ten words in each of the four items"
    index = build_index([["What is 2 + 2?", *[same] * 3], [same]])
    # In another benchmark, the wording belongs to one item.
    assert index.judged().tolist() == [False, False, False, False, True]


def test_benchmarks_without_long_items_find_nothing():
    assert searched(["two words", ""], ["two words and more words than eight in all, here"]) == {}


def test_a_match_has_its_document_and_passage():
    item = "Which of these is the largest planet in our solar system?"
    search = Search(build_index([[item]]))
    search.add(3, ("nothing",))
    search.add(7, (f"before. {item.upper()} — after",))
    search.add(8, (item,))  # as long, but later
    search.finish()
    ((_, _, match),) = search.matches()
    assert (match.words, match.place) == (11, 7)
    assert match.passage == "WHICH OF THESE IS THE LARGEST PLANET IN OUR SOLAR SYSTEM"
    assert search.documents == 3


def test_a_match_in_a_text_file_has_its_line():
    item = "Which of these is the largest planet in our solar system?"
    filler = "filler words without any meaning\n" * 40_000
    search = Search(build_index([[item]]))
    search.add(1, (filler, f"{item}\n", filler), by_line=True)
    search.finish()
    ((_, _, match),) = search.matches()
    assert match.place == 40_001


def test_no_match_crosses_documents():
    half = "Which of these is the largest"
    rest = "planet in our solar system"
    assert searched([f"{half} {rest}"], [half, rest]) == {}


def test_a_long_passage_is_shortened():
    item = " ".join(f"word{k}" for k in range(200))
    search = Search(build_index([[item]]))
    search.add(1, (item,))
    search.finish()
    ((_, _, match),) = search.matches()
    assert match.passage.startswith("word0 word1 ")
    assert match.passage.endswith(" word199")
    assert len(match.passage) == PASSAGE + 3


def test_a_repetitive_document_takes_bounded_memory():
    """Every window is at a hundred places of the item, and at thousands of the document."""
    item, document = "0 " * 100, "0 " * 20_000
    assert searched([item], [document])[0].longest == 100


def test_decomposed_letters_are_the_same():
    item = "café élan naïve façade jalapeño über Ångström ou plus"
    decomposed = item.replace("é", "e\u0301").replace("ü", "u\u0308")
    assert searched([item], [decomposed])[0].longest == 9


def test_half_of_a_surrogate_pair_is_no_letter():
    item = "one two three four five six seven eight"
    assert searched([item], [f"{item}\ud800"])[0].longest == 8
