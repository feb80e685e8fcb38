"""The ledger as its users meet it: the typed client over an in-process transport, on a SQLite file."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Measurement, timed
from ledger import wire
from ledger.bootstrap import configure_logging, embedded_client
from ledger.settings import Settings

WORDS = (
    *("tile", "vector", "width", "unroll", "threads", "rows", "polynomial", "exponent", "shift", "maximum"),
    *("accumulator", "double", "tail", "packing", "block", "register", "cache", "prefetch", "alignment", "stride"),
    *("broadcast", "reduction", "softmax", "layer", "norm", "gamma", "beta", "epsilon", "matmul"),
)
EXPERIENCES = 1000


def _text(generator: random.Random, words: int) -> str:
    return " ".join(generator.choices(WORDS, k=words))


def measurements() -> Iterator[Measurement]:
    """Yield the rows as they are measured."""
    generator = random.Random(7)
    configure_logging(Settings(log_level="error"))
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_client(f"sqlite:///{Path(folder) / 'bench.db'}", actor="bench") as client,
    ):
        client.create_library("bench")

        def record(index: int) -> object:
            new = wire.NewExperience(
                experience=f"e{index}", title=_text(generator, 6), body=_text(generator, 120), stages=("correctness",)
            )
            return client.record_experience("bench", new)

        yield timed("record", "record one experience, durably", record, times=EXPERIENCES)

        def task(index: int) -> object:
            client.start_task("bench", wire.NewTask(task=f"t{index}", operator="softmax", model="none"))
            return client.open_stage("bench", f"t{index}", wire.NewStage(stage=f"s{index}", kind="correctness"))

        yield timed("open", "start a task and open its first stage", task, times=100)

        def retrieve(index: int) -> object:
            return client.retrieve("bench", f"s{index}", _text(generator, 12))

        yield timed("retrieve", f"retrieve and rank among {EXPERIENCES} experiences", retrieve, times=100)
        yield timed("state", "read the whole state", lambda _: client.state("bench"), times=10)
        events = client.library("bench").sequence
        yield timed(
            "verify", "verify the hash chain", lambda _: client.verify("bench"), times=5, warm_up=1, items=events
        )
