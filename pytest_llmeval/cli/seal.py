"""``llmeval seal``: random orders and a canary for a private benchmark, and their verification."""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.validation import read_text
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.sources.sealing import CANARY
from pytest_llmeval.sources.sealing import DRAWN
from pytest_llmeval.sources.sealing import canary_guid
from pytest_llmeval.sources.sealing import check_sealed
from pytest_llmeval.sources.sealing import commitment
from pytest_llmeval.sources.sealing import jsonl_text
from pytest_llmeval.sources.sealing import read_rows
from pytest_llmeval.sources.sealing import refers_by_place
from pytest_llmeval.sources.sealing import seal

_SHORTEST = 16  # characters of a seed that cannot be guessed
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def add_commands(commands: Any) -> None:
    """Add ``seal`` to the subparsers of ``llmeval``."""
    parser = commands.add_parser(
        "seal", help="put the options and items of a benchmark's file in random order"
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="jsonl file; --verify: a sealed one"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="sealed file to write")
    parser.add_argument(
        "--seed", metavar="TEXT", help="seed of all orders (default: random, written to FILE.seed)"
    )
    parser.add_argument(
        "--verify", action="store_true", help="check a sealed file against seed and commitment"
    )
    parser.add_argument(
        "--commitment", metavar="HASH", help="the published one (default: that of FILE.seed)"
    )
    parser.set_defaults(command=_command)


def _command(options: argparse.Namespace) -> int:
    return _verify(options) if options.verify else _seal(options)


def _seal(options: argparse.Namespace) -> int:
    out = options.out
    if out is None:
        raise ConfigError("--out: name the sealed file to write")
    if options.commitment is not None:
        raise ConfigError("--commitment: read with --verify only")
    for file in (out, _seed_file(out)):
        if file.exists():
            raise ConfigError(f"--out {out}: {file} exists, and is not replaced")
    rows = read_rows(options.file)
    moved = 0
    for line, row in enumerate(rows, start=1):
        where = f"{options.file}, item {line}"
        for name in (CANARY, DRAWN):
            if name in row:
                raise DataError(f"{where}: has a field {name!r}: the file is sealed already")
        texts: list[str] = row.get("options") or []
        moved += len(texts) > 0
        for text in filter(refers_by_place, texts):
            raise DataError(
                f"{where}: option {text!r:.60} refers to the place of others, which are put in another"
                " order: reword it"
            )
    seed = secrets.token_hex(32) if options.seed is None else options.seed
    if len(seed) < _SHORTEST:
        raise ConfigError(f"--seed: {len(seed)} characters can be guessed; at least {_SHORTEST}")
    secret = {"seed": seed, "commitment": commitment(rows, seed)}
    _write(_seed_file(out), json.dumps(secret) + "\n", mode=0o600)
    _write(out, jsonl_text(seal(rows, seed)), mode=0o644)
    print_line(
        f"wrote {out}: {count(len(rows), 'item')} in random order, {moved:,} with options in random"
        " order"
    )
    print_line(f"canary GUID {canary_guid(seed)}")
    print_line(f"commitment sha256:{secret['commitment']} (publish it with the file)")
    print_line(f"wrote {_seed_file(out)}: keep it private, llmeval seal --verify needs it")
    return 0


def _verify(options: argparse.Namespace) -> int:
    if options.out is not None:
        raise ConfigError("--out: nothing is written with --verify")
    stored: dict[str, str] = {}
    if options.seed is None or options.commitment is None:
        stored = _read_secret(_seed_file(options.file))
    published = _HASH.fullmatch(options.commitment or stored["commitment"])
    if published is None:
        raise ConfigError(f"--commitment {options.commitment}: not 64 hexadecimal digits")
    before = check_sealed(options.file, options.seed or stored["seed"], published[1])
    print_line(f"{options.file}: {count(len(before), 'item')} in the orders of the seed, unchanged")
    print_line(f"commitment sha256:{published[1]}")
    return 0


def _seed_file(sealed: Path) -> Path:
    return sealed.with_name(f"{sealed.name}.seed")


def _read_secret(file: Path) -> dict[str, str]:
    try:
        value = json.loads(read_text(file, "file with the seed (or give --seed and --commitment)"))
        return {name: str(value[name]) for name in ("seed", "commitment")}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{file}: not the seed of a sealed file") from None


def _write(file: Path, text: str, mode: int) -> None:
    handle = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode)
    with open(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
