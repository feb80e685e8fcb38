"""The devices behind one port, as far as a machine without an accelerator can show them."""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from device import backends
from device.arena import Arena
from device.backends.cuda import CudaBackend
from device.backends.npu import NpuBackend, cann_home, cann_version
from device.backends.null import NullBackend
from device.errors import DeviceUnavailable, UnknownLanguage
from device.timing import EventTimer, MonotonicTimer
from device.types import Build, Limits


class Event:
    """An event that remembers when it was recorded, as a device's does."""

    log: list[str]

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()
        self.log.append("record")

    def synchronize(self) -> None:
        self.log.append("wait for the event")

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * 1000


def accelerator(*, late: float = 0.0, **options: Any) -> tuple[Any, list[str]]:
    """A device namespace as torch has one; `late` is work on a stream that the events do not see."""
    log: list[str] = []

    def synchronize() -> None:
        log.append("wait for all streams")
        if "record" in log:
            time.sleep(late)

    facts = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_name": lambda _: "Ascend910B1",
        "Event": type("Event", (Event,), {"log": log}),
        "synchronize": synchronize,
        **options,
    }
    return SimpleNamespace(**facts), log


def torch_with(namespace: str, device: Any) -> ModuleType:
    module = ModuleType("torch")
    setattr(module, namespace, device)
    return module


@pytest.mark.parametrize("kind", ["cpu", "npu", "cuda", "null"])
def test_every_device_is_there_by_its_name(kind: str) -> None:
    """Asking for one gives that one, never another."""
    assert backends.get(kind).kind == kind


def test_the_timer_of_a_device_is_its_events() -> None:
    """Idle before, events around the call, the event waited for, and then all streams."""
    device, log = accelerator()
    backend = NpuBackend(lambda: torch_with("npu", device))
    timer = backend.timer()
    assert isinstance(timer, EventTimer)
    assert 19 < timer.time(lambda: time.sleep(0.02)) < 40
    assert log == ["wait for all streams", "record", "record", "wait for the event", "wait for all streams"]


def test_work_on_another_stream_is_inside_the_window() -> None:
    """Events on one stream miss what was put on another: waiting for all streams shows it, and it is counted."""
    device, _ = accelerator(late=0.03)
    timer = CudaBackend(lambda: torch_with("cuda", device)).timer()
    assert timer.time(lambda: None) > 29


def test_the_timer_of_the_cpu_is_the_monotonic_clock() -> None:
    """A CPU has no events."""
    timer = backends.get("cpu").timer()
    assert isinstance(timer, MonotonicTimer)
    assert 9 < timer.time(lambda: time.sleep(0.01)) < 30


def test_a_device_is_described_by_its_own_name() -> None:
    """The name comes from the driver, the toolkit from its files or from torch."""
    device, _ = accelerator()
    torch = torch_with("cuda", device)
    torch.version = SimpleNamespace(cuda="12.8")  # type: ignore[attr-defined]
    described = CudaBackend(lambda: torch).describe()
    assert (described.kind, described.name, described.toolkit) == ("cuda", "Ascend910B1", "CUDA 12.8")


def test_what_is_missing_for_an_npu_is_named() -> None:
    """Without torch_npu the message names it, the extra, and CANN."""
    with pytest.raises(
        DeviceUnavailable, match=r"torch_npu is not installed \(the `npu` extra\).*CANN.*sagebook\[npu\]"
    ):
        NpuBackend().describe()


def _broken() -> bool:
    raise RuntimeError("driver does not answer (507899)")


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (None, "has no torch.npu"),
        (accelerator(is_available=lambda: False)[0], "finds no device"),
        (accelerator(device_count=lambda: 0)[0], "finds no device"),
        (accelerator(is_available=_broken)[0], "fails with RuntimeError: driver does not answer"),
    ],
)
def test_a_broken_driver_is_not_taken_for_no_device(device: Any, words: str) -> None:
    """Each state has words of its own."""
    backend = NpuBackend(lambda: torch_with("npu" if device else "other", device))
    with pytest.raises(DeviceUnavailable, match=words):
        backend.timer()


def test_an_accelerator_compiles_no_language_yet() -> None:
    """With a device there, the language is what is missing, and the error says so."""
    backend = NpuBackend(lambda: torch_with("npu", accelerator()[0]))
    with pytest.raises(UnknownLanguage, match="the npu device does not compile 'cpp'; its languages: none yet"):
        backend.build("", "cpp", Limits())


def test_the_null_device_refuses_everything_by_name() -> None:
    """It builds nothing, opens nothing and times nothing."""
    null = NullBackend()
    assert null.describe().cores == 0
    with pytest.raises(UnknownLanguage, match="null"):
        null.build("", "cpp", Limits())
    arena = Arena(0)
    with pytest.raises(DeviceUnavailable, match="runs nothing"):
        null.open(Build("built", (), 0.0, ""), arena, Limits(), 1)
    arena.close()
    with pytest.raises(DeviceUnavailable, match="times nothing"):
        null.timer()


def test_cann_is_found_where_its_environment_says(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is read from the toolkit's own file."""
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    if cann_home() is None:
        assert cann_version() is None
    folder = tmp_path / "aarch64-linux"
    folder.mkdir()
    folder.joinpath("ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.5.0\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert (cann_home(), cann_version()) == (tmp_path, "CANN 8.5.0")
