"""A SQLite file has one service that writes it; everyone may read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from ledger.errors import WriterHeldError
from ledger.store.log import AnySequence, Draft, NewLibrary
from ledger.store.sql import open_log
from ledger.store.writer_lock import WriterLock

DRAFT = Draft("test.happened", 1, "1", "2026-01-02T03:04:05Z", "t", None, None, msgspec.Raw(b"1"))
HOLDER = """
import sys, time
from ledger.store.sql import open_log
log = open_log(sys.argv[1])
log.hold("http://127.0.0.1:8321")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


def test_a_second_service_is_refused_and_told_where_the_first_is(url: str):
    """Its refusal names process and address; after a kill of the first, the second may start at once."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert any(line == "held\n" for line in holder.stdout)
    log = open_log(url)
    began = time.monotonic()
    with pytest.raises(
        WriterHeldError, match=rf"http://127\.0\.0\.1:8321 \(process {holder.pid}\).*--server"
    ) as caught:
        log.hold("http://127.0.0.1:1")
    assert time.monotonic() - began < 1.0
    assert caught.value.facts["pid"] == holder.pid
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    log.hold("http://127.0.0.1:1")
    assert log.append("lib", [DRAFT], expected=NewLibrary()).sequence == 1
    log.close()


def test_beside_a_service_others_read_and_do_not_write(url: str):
    """Appends and blobs are refused by name; reads see each append of the service at once."""
    service, command = open_log(url), open_log(url)
    command.append("lib", [DRAFT], expected=NewLibrary())
    service.hold("http://127.0.0.1:8321")
    for write in (
        lambda: command.append("lib", [DRAFT], expected=AnySequence()),
        lambda: command.put_blob("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", b"x"),
    ):
        with pytest.raises(WriterHeldError, match=r"http://127\.0\.0\.1:8321"):
            write()
    service.append("lib", [DRAFT], expected=AnySequence())
    assert command.head("lib").sequence == 2
    service.close()
    assert command.append("lib", [DRAFT], expected=AnySequence()).sequence == 3
    command.close()


def test_a_service_waits_for_a_transaction_that_is_under_way(tmp_path: Path):
    """One command's transaction ends after a fifth of a second; then the service holds the file."""
    path = tmp_path / "ledger.db"
    command, service = WriterLock(path), WriterLock(path)
    command.begin()
    threading.Timer(0.2, command.end).start()
    began = time.monotonic()
    service.hold("here")
    assert 0.15 < time.monotonic() - began < 3.0
    with pytest.raises(WriterHeldError):
        command.begin()
    service.release()
    command.begin()
    command.end()
    command.release()


def test_two_transactions_of_one_process_hold_it_until_both_have_ended(tmp_path: Path):
    """The first that ends does not let a service in beside the other."""
    path = tmp_path / "ledger.db"
    command, other = WriterLock(path), os.open(tmp_path / "ledger.db.lock", os.O_RDWR | os.O_CREAT)
    import fcntl

    command.begin()
    command.begin()
    command.end()
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    command.end()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    command.release()
