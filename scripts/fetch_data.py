"""Download the public data sets that the tests use, in the layout that they expect.

    python scripts/fetch_data.py ../shared/data            everything that is not there yet
    python scripts/fetch_data.py FOLDER --only mmlu,arc    some folders
    python scripts/fetch_data.py --list                    sources and licences, no download

Files come from GitHub and the Hugging Face hub, at pinned commits. The licence of each set is
printed: some exclude commercial use, and some copies state none, so the data is not part of any
package. A file that exists is kept. Python's standard library only.

Not fetched are sets that were derived from several sources or reduced to a sample: recorded
outputs of models (``outputs``), ``hellaswag``, ``winogrande``, ``mbpp_plus``, ``swe_bench``. Tests
that need them stay skipped.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import shutil
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 60  # seconds without a byte

GSM8K = "openai/grade-school-math@3101c7d5072418e28b9008a6636bde82a006892c"
HUMANEVAL = "openai/human-eval@6d43fb980f9fee3c892a914eda09951f772ad10d"
MGSM = "google-research/url-nlp@452a21ad3dae5668c06ceeac21ff073e1e40f9be"
MMLU = "stanford-cs336/assignment5-alignment@eb2c562e05802d3c9ee4c4ec2eec43b104d77e9e"
MMLU_CSV = "HaeChan0305/MLILAB-FedLLM@d92730e8bacd7b3a61e551e015e40588e10234b4"
REDUX = "aryopg/mmlu-redux@4563cfa79b659d76716e5b6019f46bba85fa02db"
CMMLU = "haonan-li/CMMLU@d6e7b716d8ac694f38969a6c0407437d1fded799"
MBPP = "deepseek-ai/DeepSeek-Coder@2f9fd85927c669dae3c0fbb2d607274023af243e"
MBPP_SANITIZED = "mrigankpawagi/PropertyEval@b2be813dcff867cc350c61b8d3ea57ec088ce1ac"
ZERO_SHOT = "kojima-takeshi188/zero_shot_cot@5ef330fcdeec0cd26aee27943504f91f8ec1c33c"
TRUTHFULQA = "benedictflorance/truthfulqa_experiments@6fdfd38288e86296582a584694df5cf43d1f634a"
OUTPUTS = "TIGER-AI-Lab/MMLU-Pro@f418b116db00b065c2aea046518d8fcf74d39872"
HUB_PRO = "TIGER-Lab/MMLU-Pro@3373e0b32277875b8db2aa555a333b78a08477ea"
ARC = "https://ai2-public-datasets.s3.amazonaws.com/arc/ARC-V1-Feb2018.zip"


@dataclass(frozen=True)
class File:
    """A file to be fetched.

    ``target``: path below the data folder; a name that ends in ``.gz`` is compressed here if the
    source is not. ``source``: ``owner/name@commit`` of GitHub (``hub`` false) or of a data set of
    the hub, or the address of a zip archive. ``path``: path in it.
    """

    target: str
    source: str
    path: str
    hub: bool = False

    @property
    def url(self) -> str:
        """Address of the raw file, or of the archive that contains it."""
        if self.source.startswith("https://"):
            return self.source
        name, _, commit = self.source.partition("@")
        if self.hub:
            return f"https://huggingface.co/datasets/{name}/resolve/{commit}/{self.path}"
        return f"https://raw.githubusercontent.com/{name}/{commit}/{self.path}"


@dataclass(frozen=True)
class Tree:
    """Files below a folder of a repository on GitHub, from its archive.

    ``names``: pattern of the paths below ``path``.
    """

    target: str
    source: str
    path: str
    names: str = r"[\w/-]+\.csv"

    @property
    def url(self) -> str:
        """Address of the archive."""
        name, _, commit = self.source.partition("@")
        return f"https://codeload.github.com/{name}/tar.gz/{commit}"


NOT_FETCHED = {"hellaswag", "mbpp_plus", "outputs", "swe_bench", "winogrande"}
"""Folders of the tests' data that this script does not make."""

LICENCES = {
    "arc": "CC BY-SA 4.0",
    "cmmlu": "CC BY-NC-SA 4.0: not for commercial use",
    "commonsenseqa": "MIT (data card; the copy states none)",
    "gsm8k": "MIT",
    "humaneval": "MIT",
    "mbpp": "CC BY 4.0",
    "mgsm": "CC BY 4.0",
    "mmlu": "MIT",
    "mmlu_hf_csv": "MIT",
    "mmlu_pro": "Apache-2.0",
    "mmlu_pro_outputs": "Apache-2.0",
    "mmlu_redux": "CC BY 4.0",
    "truthfulqa": "Apache-2.0",
}
"""Folder → licence of its data."""

FIVE_SUBJECTS = "abstract_algebra|anatomy|clinical_knowledge|global_facts|virology"

TREES = (
    Tree("mmlu", MMLU, "data/mmlu"),
    Tree("mmlu_hf_csv", MMLU_CSV, "data/mmlu", rf"(dev|test)/({FIVE_SUBJECTS})_(dev|test)\.csv"),
    Tree("mmlu_redux", REDUX, "mmlu_redux"),
    Tree("cmmlu", CMMLU, "data"),
)

FILES = (
    *(
        File(
            f"arc/{part}/{part}-{split}.jsonl", ARC, f"ARC-V1-Feb2018-2/{part}/{part}-{split}.jsonl"
        )
        for part in ("ARC-Challenge", "ARC-Easy")
        for split in ("Train", "Dev", "Test")
    ),
    *(
        File(f"commonsenseqa/{name}{ending}", ZERO_SHOT, f"dataset/CommonsenseQA/{name}")
        for name, ending in (("dev_rand_split.jsonl", ""), ("train_rand_split.jsonl", ".gz"))
    ),
    *(
        File(f"gsm8k/{name}{ending}", GSM8K, f"grade_school_math/data/{name}")
        for name, ending in (
            ("test.jsonl", ""),
            ("train.jsonl", ""),
            ("test_socratic.jsonl", ".gz"),
            ("example_model_solutions.jsonl", ".gz"),
        )
    ),
    *(
        File(f"humaneval/{name}", HUMANEVAL, f"data/{name}")
        for name in ("HumanEval.jsonl.gz", "example_problem.jsonl", "example_samples.jsonl")
    ),
    File("mbpp/mbpp.jsonl", MBPP, "Evaluation/MBPP/data/mbpp.jsonl"),
    File("mbpp/sanitized-mbpp.json", MBPP_SANITIZED, "sanitized-mbpp.json"),
    *(
        File(f"mgsm/mgsm_{language}.tsv", MGSM, f"mgsm/mgsm_{language}.tsv")
        for language in ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
    ),
    *(
        File(
            f"mmlu_pro/data/{split}-00000-of-00001.parquet",
            HUB_PRO,
            f"data/{split}-00000-of-00001.parquet",
            hub=True,
        )
        for split in ("test", "validation")
    ),
    *(
        File(f"mmlu_pro_outputs/{name}", OUTPUTS, f"eval_results/{name}")
        for name in (
            "model_outputs_Llama-2-7b-hf_5shots.zip",
            "model_outputs_Meta-Llama-3-8B_5shots.zip",
            "model_outputs_gemini-1.5-flash-002_5shots.zip",
        )
    ),
    File("truthfulqa/TruthfulQA.csv", TRUTHFULQA, "TruthfulQA.csv"),
)


ENTRIES: tuple[File | Tree, ...] = (*TREES, *FILES)


def folder_of(entry: File | Tree) -> str:
    """First part of the target, which names the data set."""
    return entry.target.partition("/")[0]


def download(url: str) -> bytes:
    """Content of an address; raises OSError if it cannot be fetched."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        return bytes(response.read())


def write(file: Path, content: bytes) -> None:
    """Write a file in one step, compressed if its name demands it and its content is not."""
    if file.suffix == ".gz" and content[:2] != b"\x1f\x8b":
        content = gzip.compress(content, mtime=0)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
        temporary.write(content)
    Path(temporary.name).replace(file)


def unpack(tree: Tree, archive: bytes, folder: Path) -> int:
    """Write the files of a tree below a folder; return their number."""
    number = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        for member in files:
            # The first part is the name of the repository with the commit.
            inside = member.name.partition("/")[2]
            prefix = f"{tree.path}/"
            name = inside.removeprefix(prefix)
            if not (inside.startswith(prefix) and re.fullmatch(tree.names, name)):
                continue
            content = files.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            write(folder / tree.target / name, content.read())
            number += 1
    return number


def fetch(folder: Path, wanted: Iterable[str]) -> list[str]:
    """Fetch data sets by the names of their folders; return one line per failure."""
    failures = []
    archives: dict[str, bytes] = {}
    names = set(wanted)
    for tree in TREES:
        if folder_of(tree) not in names or (folder / tree.target).is_dir():
            continue
        try:
            number = unpack(tree, download(tree.url), folder)
        except (OSError, tarfile.TarError) as error:
            failures.append(f"{tree.target}: {tree.url}: {error}")
            continue
        if number == 0:
            failures.append(f"{tree.target}: {tree.url} has no {tree.path}/{tree.names}")
        print(f"{tree.target}: {number} files")
    for file in FILES:
        target = folder / file.target
        if folder_of(file) not in names or target.exists():
            continue
        try:
            if file.url not in archives:
                content = download(file.url)
                if file.url.endswith(".zip") and not file.path.endswith(".zip"):
                    archives[file.url] = content
            if file.url in archives:
                with zipfile.ZipFile(io.BytesIO(archives[file.url])) as archive:
                    content = archive.read(file.path)
            write(target, content)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            failures.append(f"{file.target}: {file.url}: {error}")
            continue
        print(f"{file.target}: {len(content):,} bytes")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--only", default=",".join(LICENCES), metavar="NAME,…", help="folders")
    parser.add_argument("--list", action="store_true", help="print sources and licences")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := sorted(set(names) - LICENCES.keys()):
        parser.error(f"--only: unknown {', '.join(unknown)}; known: {', '.join(LICENCES)}")
    for name in names:
        sources = sorted({entry.source for entry in ENTRIES if folder_of(entry) == name})
        print(f"{name}: {LICENCES[name]}; {', '.join(sources)}")
    if arguments.list:
        return
    if arguments.folder is None:
        parser.error("name the folder to write to, such as ../shared/data")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(arguments.folder).free < 100_000_000:
        parser.error(f"{arguments.folder}: less than 100 MB free")
    if failures := fetch(arguments.folder, names):
        sys.exit("not fetched:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
