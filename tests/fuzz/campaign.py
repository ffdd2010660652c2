"""Fuzz one target, guided by coverage, for a number of seconds of processor time: `pip install -e '.[test,fuzz]'`, then

    python -m tests.fuzz.campaign TARGET --cpu-seconds 600 --found DIRECTORY

An input that breaks a rule ends the campaign with exit status 1, its traceback, and a file in the directory; what
reaches new branches is kept there too, so that a later campaign goes on from it. Exit status 0: the time is over.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import atheris

from tests.fuzz.target import load_target, target_names

INPUT_SIZE_MAX = 65_536


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz one target, guided by coverage.")
    parser.add_argument("target", choices=target_names())
    parser.add_argument("--cpu-seconds", type=float, default=60.0, help="processor time of the campaign")
    parser.add_argument("--found", type=Path, default=None, help="folder for the inputs found")
    parser.add_argument("--input-size-max", type=int, default=INPUT_SIZE_MAX, help="longest input, in bytes")
    options = parser.parse_args()

    with atheris.instrument_imports(include=["qsctl"]):
        target = load_target(options.target)

    found = options.found or Path(tempfile.mkdtemp(prefix=f"qsctl-fuzz-{target.name}-"))
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    begins_at = time.process_time()
    count = 0

    def one_input(data: bytes) -> None:
        nonlocal count
        used_s = time.process_time() - begins_at
        if used_s > options.cpu_seconds:
            sys.stderr.write(f"{target.name}: {count} inputs in {used_s:.0f} s of processor time, no rule broken\n")
            sys.stderr.flush()
            os._exit(0)
        count += 1
        try:
            target.one_input(data)
        except BaseException:
            name = found / f"broken-{abs(hash(data)):x}"
            name.write_bytes(data)
            traceback.print_exc()
            sys.stderr.write(f"{target.name}: broken by {name} after {count} inputs, {used_s:.0f} s\n")
            sys.stderr.flush()
            os._exit(1)

    arguments = [sys.argv[0], f"-max_len={options.input_size_max}", "-timeout=60", f"-artifact_prefix={found}/"]
    if target.dictionary:
        words = found / "dictionary"
        lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.dictionary)
        words.write_text("".join(f'"{line}"\n' for line in lines), encoding="ascii")
        arguments.append(f"-dict={words}")
    atheris.Setup([*arguments, str(found / "corpus"), str(target.corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
