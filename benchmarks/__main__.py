"""`python -m benchmarks [NAME ...] [--json] [-- ARGUMENT ...]`: run what is in this folder and print what it measured.

What comes after `--` goes to the named ones that print a table of their own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
# Every other file here is a benchmark. It offers `measurements()`, which yields `Measurement` rows for one table; or it
# is a script that compares, and prints a table of its own.
NOT_BENCHMARKS = {"__init__", "__main__", "history", "measure", "serving"}


def main() -> int:
    """Measure and print: a table for a person, or one JSON object a line with every sample."""
    names = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones, default all: {', '.join(names)}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with every sample")
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    options, further = parser.parse_args(given[:cut]), given[cut + 1 :]
    if further and not options.names:
        parser.error("arguments after -- go to the benchmarks that are named, and none is")
    if unknown := set(options.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names)}")

    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table("benchmark", "median ms", "p95 ms", "a second", "calls", "what", title=machine)
    for column in table.columns[1:5]:
        column.justify = "right"
    scripts: list[str] = []
    progress = Console(stderr=True)
    with progress.status("measuring") as status:
        for name in options.names or names:
            module = importlib.import_module(f"benchmarks.{name}")
            if not hasattr(module, "measurements"):
                scripts.append(name)
                continue
            for row in module.measurements():
                status.update(f"measured {name}: {row.name}")
                if options.json:
                    print(json.dumps({"benchmark": name, "machine": machine, **row.as_dict()}), flush=True)
                table.add_row(
                    f"{name}: {row.name}", f"{row.median_ms:.2f}", f"{row.p95_ms:.2f}", f"{row.items_per_second:,.0f}",
                    str(len(row.samples_ms)), row.what,
                )  # fmt: skip
    if not options.json and table.rows:
        Console(width=None if sys.stdout.isatty() else 140).print(table)
    failed = False
    for name in [] if options.json else scripts:
        print(f"\n{name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *further]
        failed |= subprocess.run(command, check=False).returncode != 0  # noqa: S603 - a name from this folder
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
