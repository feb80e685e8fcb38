"""The test suite's own guards hold."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

import platformdirs
import pytest

from tests.conftest import NetworkForbiddenError, is_loopback


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_a_connection_off_this_machine_is_forbidden(host: str) -> None:
    """192.0.2.0/24 and 2001:db8::/32 are the documentation ranges: nothing is there, and nothing is sent."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(NetworkForbiddenError, match="loopback"):
        sock.connect((host, 80))


def test_a_name_off_this_machine_is_not_looked_up() -> None:
    """Name look-ups leave the machine too."""
    with pytest.raises(NetworkForbiddenError):
        socket.getaddrinfo("model.example", 443)


def test_loopback_stays_open() -> None:
    """The service, the judge and the protocol servers of the tests are reached on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x")
            assert accepted.recv(1) == b"x"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_this_machine(host: str) -> None:
    """All of 127.0.0.0/8 is loopback, not its first address alone."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.0.1", "128.0.0.1", "localhost.example"])
def test_private_ranges_are_other_machines(host: str) -> None:
    """A private address is somebody's machine, and a name may only look like this one's."""
    assert not is_loopback(host)


def test_user_folders_are_temporary() -> None:
    """A default library or judge key made by a test never lands in the user's own folders."""
    data = platformdirs.user_data_path("sagebook")
    assert Path.home() not in data.parents
    assert "sagebook-tests-" in str(data)


def test_no_setting_of_the_user_reaches_a_test() -> None:
    """SAGEBOOK_DATABASE_URL and its like may be set where the tests are run."""
    left = [name for name in os.environ if name.startswith("SAGEBOOK_")]
    assert [name for name in left if not name.startswith("SAGEBOOK_TEST_")] == []


@pytest.mark.parametrize("_run", [1, 2])
def test_global_generators_start_alike(_run: int) -> None:
    """random.Random(0) gives 0.8444218515250481 first, whatever test ran before."""
    assert random.random() == 0.8444218515250481
