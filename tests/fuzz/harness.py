"""Fuzz a target by hand: `python -m tests.fuzz.harness csv --seconds 60`.

With atheris installed the search is guided by the coverage of Plait's code (libFuzzer); without it,
the files of the corpus are mutated at random. What fails is written to `--findings`; minimise it
(`--minimise FILE`), put it into the corpus and mend the cause. The tests replay the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("csv", "jsonl", "parquet", "sql", "plan", "plan_json", "query_json", "events")
_PIECES = (b'"', b"\n", b"\r", b",", b"\xff", b"null", b"{", b"}", b"[", b"]", b"(", b")", b"0")

Target = Callable[[bytes], None]


def seeds(name: str) -> list[bytes]:
    """The inputs in the corpus of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def mutated(data: bytes, others: list[bytes], choose: random.Random) -> bytes:
    """The data with a few changes: bytes flipped, removed, repeated, or taken from elsewhere."""
    found = bytearray(data)
    for _ in range(choose.randint(1, 4)):
        a, b = sorted(choose.randint(0, len(found)) for _ in range(2))
        kind = choose.randrange(5)
        if kind == 0 and a < len(found):
            found[a] ^= 1 << choose.randrange(8)
        elif kind == 1:
            del found[a : min(b, a + 20)]
        elif kind == 2:
            found[a:a] = found[a : min(b, a + 50)] * choose.randint(1, 3)
        elif kind == 3:
            found[a:a] = choose.choice(_PIECES)
        else:
            other = choose.choice(others)
            at = choose.randint(0, len(other))
            found[a:b] = other[at : at + choose.randint(0, 40)]
    return bytes(found[:4096])


def run_at_random(target: Target, name: str, seconds: float, findings: Path) -> int:
    """Mutations of the corpus; the number of inputs that were tried."""
    choose, corpus, tried = random.Random(), seeds(name), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(choose.choice(corpus), corpus, choose)
        try:
            target(data)
        except Exception as error:
            path = findings / f"{name}-{hashlib.sha1(data).hexdigest()[:12]}"
            path.write_bytes(data)
            print(f"{path}: {type(error).__name__}: {error}")
        tried += 1
    return tried


def minimise(target: Target, data: bytes) -> bytes:
    """A shorter input that fails in the same way, by taking pieces out."""
    kind = _failure(target, data)
    size = max(len(data) // 2, 1)
    while kind:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if _failure(target, shorter) == kind:
                data = shorter
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return data


def _failure(target: Target, data: bytes) -> str:
    try:
        target(data)
    except Exception as error:
        return type(error).__name__
    return ""


def guide(atheris: Any, name: str, seconds: float, findings: Path) -> None:
    """Hand the target over to libFuzzer, which ends the process."""
    compiled = ["plait.kernels", "plait.local.sources.scan"]
    with atheris.instrument_imports(include=["plait"], exclude=compiled):
        target = importlib.import_module("tests.fuzz.targets").TARGETS[name]
    grown = tempfile.mkdtemp(prefix="plait-fuzz-")
    options = [
        sys.argv[0],
        f"-max_total_time={int(seconds)}",
        f"-artifact_prefix={findings}/{name}-",
        "-max_len=4096",
        "-rss_limit_mb=4096",
        "-timeout=60",
        "-print_final_stats=1",
        grown,
        str(CORPUS / name),
    ]
    atheris.Setup(options, target)
    atheris.Fuzz()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--findings", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--minimise", type=Path, metavar="FILE")
    parser.add_argument("--unguided", action="store_true")
    given = parser.parse_args()
    if given.minimise is None and not given.unguided:
        try:
            atheris = importlib.import_module("atheris")
        except ImportError:
            print("atheris is not installed: mutating at random")
        else:
            guide(atheris, given.target, given.seconds, given.findings)
    target = importlib.import_module("tests.fuzz.targets").TARGETS[given.target]
    if given.minimise is not None:
        print(minimise(target, given.minimise.read_bytes()))
        return
    tried = run_at_random(target, given.target, given.seconds, given.findings)
    print(f"{given.target}: {tried} inputs in {given.seconds:g} s")


if __name__ == "__main__":
    main()
