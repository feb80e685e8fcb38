"""A private PostgreSQL on loopback, for tests and benchmarks: started once, gone with the process.

SAGEBOOK_TEST_POSTGRES_URL names a database to spoil instead. Otherwise the server comes from Debian's `postgresql`, which
is installed where that is possible (as root, with apt-get), and runs as a user other than root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


class NoPostgresError(Exception):
    """There is no server here, and none can be had; the message says why."""


def binaries() -> Path:
    """The folder of initdb and postgres. Raises NoPostgresError."""
    found = _installed()
    if found is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise NoPostgresError(
                "PostgreSQL is not installed, and only root can install it: apt-get install postgresql"
            )
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", "postgresql"]
        for before in ([], ["apt-get", "-qq", "update"]):
            if before:
                subprocess.run(before, env=environment, capture_output=True, check=False, timeout=300)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
            found = _installed()
            if found is not None:
                break
        else:
            raise NoPostgresError(f"PostgreSQL could not be installed: {done.stderr.strip()[-300:]}")
    return found


def _installed() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3].zfill(4))
    if folders:
        return folders[-1].parent
    here = shutil.which("initdb")
    return Path(here).resolve().parent if here else None


def _user() -> str | None:
    """Whom the server runs as: itself refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise NoPostgresError("there is no user other than root to run PostgreSQL as")


class Server:
    """One running server; `url()` makes an empty database on it."""

    def __init__(self, folder: Path, *, options: str = "") -> None:
        self._bin = binaries()
        self._user = _user()
        self._folder = folder
        self._options = options
        self._count = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run(
            "initdb",
            "-D",
            str(folder / "data"),
            "-U",
            "sagebook",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--data-checksums",
        )
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=100 {self._options}"
        self._run(
            "pg_ctl", "-D", str(self._folder / "data"), "-l", str(self._folder / "log"), "-w", "-o", options, "start"
        )

    def stop(self, how: str = "fast") -> None:
        """Stop it; `immediate` is a crash."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", how, "-w", "stop")

    def url(self) -> str:
        """The URL of a new, empty database."""
        self._count += 1
        name = f"db{self._count}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "sagebook", name)
        return f"postgresql://sagebook@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: str) -> None:
        as_user = (
            [] if self._user is None else ["setpriv", f"--reuid={self._user}", "--regid=nogroup", "--clear-groups"]
        )
        with tempfile.TemporaryFile() as said:
            # Not a pipe: the server that pg_ctl starts would keep it open.
            done = subprocess.run(
                [*as_user, str(self._bin / program), *arguments],
                cwd=self._folder, stdout=said, stderr=said, check=False, timeout=120,
            )  # fmt: skip
            if done.returncode != 0:
                said.seek(0)
                raise NoPostgresError(f"{program} failed: {said.read().decode(errors='replace')[-500:]}")


@contextlib.contextmanager
def running(options: str = "") -> Iterator[Server]:
    """A server for a while. Raises NoPostgresError."""
    folder = Path(tempfile.mkdtemp(prefix="sagebook-postgres-"))
    try:
        server = Server(folder, options=options)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
