"""A ledger service that a run starts for itself on a free loopback port, brings back if it dies, stops at the end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from agent.errors import LedgerStartError

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_WATCH_SECONDS = 0.25


class LedgerProcess:
    """`sagebook serve` on one database. The port stays the same over restarts, so clients need not know of them."""

    def __init__(self, database_url: str | None, log: Path, *, notice: Callable[[str], None] | None = None) -> None:
        """Choose a port; nothing is started yet.

        `log` takes what the service writes; `notice` is told when the service died and was started again.
        """
        self._notice = notice
        self._database_url = database_url
        self._log = log
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._watcher: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Root of the service."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the service, wait until it answers, and watch it. Raises LedgerStartError with the end of its log."""
        self.revive()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="ledger-watch", daemon=True)
            self._watcher.start()

    def revive(self) -> None:
        """Start the service again if its process has ended."""
        with self._starting:
            if self.pid is not None or self._stopping.is_set():
                return
            died = self._process is not None
            self._launch()
            if died and self._notice is not None:
                self._notice(f"the ledger's process had died and was started again (process {self.pid})")

    def _watch(self) -> None:
        """Bring the service back as soon as it dies, so that a client's own short retries mostly suffice."""
        while not self._stopping.wait(_WATCH_SECONDS):
            try:
                self.revive()
            except LedgerStartError:
                continue  # whoever waits for an answer meets the reason in the log, and gives up in its own time

    def _launch(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(Path(sys.executable).with_name("sagebook"))]
        if not Path(command[0]).exists():
            command = [sys.executable, "-c", "from ledger.command import main; main()"]
        command += ["serve", "--host", "127.0.0.1", "--port", str(self._port)]
        if self._database_url is not None:
            command += ["--db", self._database_url]
        tether = [sys.executable, "-m", "agent.tether", str(os.getpid())]
        with self._log.open("ab") as log:
            # A session of its own: an interrupt at the keyboard reaches the run, which then stops the service in order.
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*tether, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._await_answer()

    def stop(self) -> None:
        """End the service: a polite signal to its process id, and a hard one if it does not go."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join()
            self._watcher = None
        self._end()

    def _end(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and not self._stopping.is_set():
            if self._process is not None and self._process.poll() is not None:
                raise LedgerStartError(
                    f"the ledger's process ended with code {self._process.returncode} at its start; "
                    f"the end of {self._log}:\n{_tail(self._log)}"
                )
            try:
                if httpx.get(f"{self.url}/health", timeout=2.0).is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        self._end()
        raise LedgerStartError(f"the ledger did not answer within {_START_SECONDS:.0f} s; see {self._log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(path: Path, lines: int = 20) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
