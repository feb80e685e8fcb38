"""What this machine has for judging kernels, what it lacks, and the one command that gets it."""

from __future__ import annotations

import base64
import importlib.metadata
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from device import backends, machine, oracle, report, sandbox
from device.arena import Arena
from device.backends.npu import cann_home, cann_version
from device.errors import DeviceError
from device.languages import cpp
from device.types import Ended, Limits
from device.worker import Worker

_EMPTY_KERNEL = (
    '#include "sagebook_kernel.h"\n'
    'extern "C" int sagebook_kernel(const sb_tensor *, int64_t, sb_tensor *, int64_t, const double *, int64_t) {\n'
    "    int n = 0;\n#pragma omp parallel reduction(+ : n)\n    n += 1;\n    return n > 0 ? 0 : 1;\n}\n"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked for: `have` says whether it is there, `get` how to get it where it is not."""

    name: str
    have: bool
    detail: str
    get: str = ""
    needed_by: str = "cpu"


def examine() -> tuple[Finding, ...]:
    """Look for everything; a broken part becomes a finding, never an exception."""
    return tuple(_careful(name, look) for name, look in _LOOKS)


def _careful(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (DeviceError, OSError) as error:
        return Finding(name, have=False, detail=str(error))


def _cpu() -> Finding:
    features = ", ".join(machine.notable_features()) or "no vector features named"
    return Finding("processor", have=True, detail=f"{machine.cpu_name()}, {machine.cores()} cores; {features}")


def _compiler() -> Finding:
    return Finding("g++", have=True, detail=cpp.compiler_version(sandbox.compiler()))


def _torch() -> Finding:
    version = oracle.installed_torch()
    get = "pip install 'sagebook[device]'"
    return Finding("torch", version is not None, version or "not installed", "" if version else get)


def _judge() -> Finding:
    """Whose reports come from here, as the setting `judges` of a ledger names it."""
    place = report.default_key_path()
    if not place.exists():
        return Finding("judge key", have=True, detail=f"made at the first verdict, as {place}")
    public = base64.b64encode(report.load_judge_key(place).public).decode()
    return Finding("judge key", have=True, detail=f"{public}, from {place}")


def _kernel() -> Finding:
    """Compile and run an empty kernel with OpenMP: what the judge needs of a machine, in one."""
    build = cpp.build(_EMPTY_KERNEL, Limits())
    if build.artefact is None:
        return Finding("OpenMP kernel", have=False, detail=build.summary, get="apt-get install g++")
    arena = Arena(4096)
    with Worker(build.artefact, arena, Limits(), machine.cores()) as worker:
        ended = worker.load()
        worker.describe([1, 0, 0, 0, 0])
        called = ended or worker.call([0])
        wanted = set(sandbox.MEASURES[1:5]) | {"private root", "system call filter"}
        lacking = sorted(wanted - set(worker.measures))
    if isinstance(called, Ended):
        return Finding("OpenMP kernel", have=False, detail=called.message)
    in_force = ", ".join(worker.measures)
    detail = f"compiles and runs; in force: {in_force}" + (
        f"; not granted here: {', '.join(lacking)}" if lacking else ""
    )
    return Finding(
        "sandbox", have=True, detail=detail, get="sysctl kernel.unprivileged_userns_clone=1" if lacking else ""
    )


def _torch_npu() -> Finding:
    try:
        return Finding("torch_npu", have=True, detail=importlib.metadata.version("torch_npu"), needed_by="npu")
    except importlib.metadata.PackageNotFoundError:
        get = "pip install 'sagebook[npu]' in an environment of its own, beside CANN"
        return Finding("torch_npu", have=False, detail="not installed", get=get, needed_by="npu")


def _cann() -> Finding:
    home = cann_home()
    get = "" if home else "install the CANN toolkit (hiascend.com/software/cann), then source its set_env.sh"
    detail = f"{cann_version() or 'CANN of unknown version'} at {home}" if home else "not found"
    return Finding("CANN", home is not None, detail, get, "npu")


def _npu_driver() -> Finding:
    path = shutil.which("npu-smi")
    said = sandbox.ask([path, "info"]) if path else None
    detail = said.splitlines()[1].strip(" |") if said and len(said.splitlines()) > 1 else "no npu-smi, or it fails"
    get = "" if said else "install the Ascend driver and firmware for the card"
    return Finding("npu-smi", said is not None, detail, get, "npu")


def _device(kind: str) -> Callable[[], Finding]:
    def look() -> Finding:
        try:
            described = backends.get(kind).describe()
        except DeviceError as error:
            return Finding(f"{kind} device", have=False, detail=str(error), needed_by=kind)
        return Finding(f"{kind} device", have=True, detail=described.name, needed_by=kind)

    return look


def _cache() -> Finding:
    folder = sandbox.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return Finding("cache folder", have=True, detail=str(Path(folder)))


_LOOKS: tuple[tuple[str, Callable[[], Finding]], ...] = (
    ("processor", _cpu),
    ("g++", _compiler),
    ("torch", _torch),
    ("cache folder", _cache),
    ("judge key", _judge),
    ("sandbox", _kernel),
    ("cuda device", _device("cuda")),
    ("torch_npu", _torch_npu),
    ("CANN", _cann),
    ("npu-smi", _npu_driver),
    ("npu device", _device("npu")),
)
