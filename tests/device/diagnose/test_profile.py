"""The `profile` tool: what the numbers are read as, and real kernels that spend their time in different ways."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from device import machine
from device.diagnose import callgrind, counters, form, profile, runs
from device.diagnose.types import Diagnosis
from device.languages import cpp
from device.operators.base import Case, Operator, TensorSpec
from tests.device.diagnose.conftest import LIMITS
from tests.device.small import double_reference, kernel

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason=f"no valgrind here: {callgrind.GET}")

BIG = Operator(
    name="big_double",
    level=1,
    family="elementwise",
    summary="y = 2 x",
    cases=(Case("plain", (TensorSpec((256, 1024)),), timed=True),),
    reference=double_reference,
    baseline=double_reference,
    outputs=lambda case: (TensorSpec(case.inputs[0].shape),),
    hidden_cases=lambda _: (),
    accumulation=lambda _: 1,
)
ELEMENTS = 256 * 1024

PLAIN = {
    "cold_ms": 1.0,
    "warm_ms": 0.9,
    "floor_ms": 0.2,
    "bytes_needed": 4e6,
    "operations_needed": 1e6,
    "bandwidth_share": 0.2,
    "arithmetic_share": 0.01,
    "machine_gb_per_s": 20.0,
    "machine_g_operations_per_s": 400.0,
    "sleeps_a_call": 1.0,
    "waited_for_a_core": 0.0,
    "empty_call_ms": 0.01,
    "one_thread_ms": 1.9,
    "times_one_thread": 1.9,
    "thread_utilisation": 0.95,
    "threads_used": 2.0,
}
"""A call in which nothing stands out."""


def kinds(threads: int = 2, **changed: float) -> list[str]:
    return [reason.kind for reason in profile.reasons({**PLAIN, **changed}, threads)]


def test_each_number_leads_to_its_kind() -> None:
    """One number out of place at a time."""
    assert kinds(thread_utilisation=0.5) == ["parallelism"]
    assert kinds(sleeps_a_call=40.0, thread_utilisation=0.6) == ["synchronisation"]
    assert kinds(cold_ms=0.1, empty_call_ms=0.05, times_one_thread=0.5, one_thread_ms=0.05) == ["synchronisation"]
    assert kinds(bandwidth_share=0.8) == ["bandwidth"]
    assert kinds(warm_ms=0.4) == ["bandwidth"]
    assert kinds(bytes_from_memory=9e6) == ["bandwidth"]
    assert kinds(bytes_from_memory=9e6, bandwidth_share=0.02, vector_share=0.1) == ["compute"]
    assert kinds(vector_share=0.1, instructions_an_element=20.0) == ["compute"]
    assert kinds(share_in_libraries=0.6) == ["compute"]
    assert kinds(arithmetic_share=0.7) == ["compute"]
    assert kinds(counted_instructions=3e7, instructions_an_element=30.0) == ["compute"]


def test_the_largest_share_comes_first_and_there_is_always_one() -> None:
    """Half of the threads' time, and ninety per cent of the bandwidth; and a call in which nothing stands out."""
    assert kinds(thread_utilisation=0.5, bandwidth_share=0.9) == ["bandwidth", "parallelism"]
    (rest,) = profile.reasons(PLAIN, 2)
    assert rest.words == "nothing stands out: 1 ms, 5 times the floor of 0.2 ms"


def test_the_number_and_the_way_out_are_in_the_words() -> None:
    """A reader sees both without the table."""
    (reason,) = profile.reasons({**PLAIN, "bytes_from_memory": 9e6}, 2)
    assert reason.words == "4 MB have to be moved, at 20% of 20 GB/s; 2.2 times as many come from memory"
    assert reason.numbers == ("bytes_needed", "bytes_from_memory", "bandwidth_share")
    assert "tiles" in reason.advice


@pytest.mark.parametrize("left_out", ["thread_utilisation", "times_one_thread", "one_thread_ms", "threads_used"])
def test_with_one_thread_nothing_is_said_of_threads(left_out: str) -> None:
    """These numbers are not there then."""
    numbers = {name: value for name, value in PLAIN.items() if name != left_out}
    assert [reason.kind for reason in profile.reasons({**numbers, "sleeps_a_call": 99.0}, 1)] == ["compute"] * 0 + [
        "bandwidth"
    ]


OUT = """# callgrind format
version: 1
positions: instr line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw

ob=./kernel.so
fl=/tmp/x/kernel.cpp
fn=sagebook_kernel
0x1010 5 10 2 1 0 1 0 0 1 0
0x1014 6 30 0 0
fi=/usr/include/c++/12/cmath
0x1018 99 7
fe=/tmp/x/kernel.cpp
cob=/lib/x86_64-linux-gnu/libm.so.6
cfn=expf
calls=3 0x900
0x101c 6 600 60 60
0x1020 6 1
ob=/lib/x86_64-linux-gnu/libm.so.6
fl=???
fn=expf
0x900 0 600 60 60

totals: 648 62 61 0 1 0 0 1 0
"""


def test_callgrinds_profile_is_read() -> None:
    """Lines of the candidate, addresses of its object, and what a called function costs only where it was spent."""
    counts = callgrind.read(OUT)
    assert (counts.totals["Ir"], counts.totals["Dr"], counts.totals["DLmw"]) == (648, 62, 0)
    assert {line: costs["Ir"] for line, costs in counts.lines.items()} == {5: 10, 6: 31}
    assert counts.lines[5]["DLmr"] == 1
    assert dict(counts.addresses) == {0x1010: 10, 0x1014: 30, 0x1018: 7, 0x1020: 1}
    top = callgrind.top(counts, "a\nb\nc\nd\n  fifth;\nsixth;\n")
    assert [(line.line, line.instructions, line.misses, line.text) for line in top] == [
        (6, 31, 0, "sixth;"),
        (5, 10, 1, "fifth;"),
    ]


LISTING = """
kernel.so:     file format elf64-x86-64

0000000000001010 <sagebook_kernel>:
    1010:\tvfmadd231ps (%rax),%ymm1,%ymm0
    1014:\tvaddss %xmm1,%xmm0,%xmm0
    1018:\tvmovups %ymm0,(%rdx)
    1020:\tadd    $0x20,%rax
    1024:\tvmulps %ymm0,%ymm0,%ymm0
"""


@pytest.mark.skipif(machine.operating_system().endswith("aarch64"), reason="names of x86-64 instructions")
def test_arithmetic_is_sorted_into_vectors_and_scalars() -> None:
    """10 vector multiply-adds, 30 scalar additions; a move, an addition of addresses, and what never ran count for neither."""
    mixed = callgrind.mix(callgrind.read(OUT), LISTING)
    assert (mixed["vector"], mixed["scalar"], mixed["other"]) == (10, 30, 8)
    names = {"vmulps": "vector", "mulsd": "scalar", "vandps": "other", "vcvtps2pd": "other", "vmaxps": "vector"}
    assert {name: callgrind.kind(name, "%xmm0,%xmm1,%xmm2") for name in names} == names


def profiled(
    source: str, operator: Operator = BIG, threads: int = 2
) -> tuple[Mapping[str, float], set[str], profile.Profile]:
    made, findings = profile.profile(source, operator, 3, LIMITS, threads)
    assert made.message == "" or "waited for a core" in made.message, made.message
    return made.cases[0].numbers, {finding.kind for finding in findings}, made


def test_every_machine_gives_the_numbers_of_the_clock() -> None:
    """Times, shares and thread use of a kernel that doubles a megabyte; the floor is the bytes at the measured rate."""
    numbers, found, made = profiled(kernel())
    assert numbers["bytes_needed"] == 2 * 4 * ELEMENTS
    assert numbers["floor_ms"] == pytest.approx(2 * 4 * ELEMENTS / numbers["machine_gb_per_s"] / 1e6, rel=1e-6)
    assert numbers["bandwidth_share"] == pytest.approx(numbers["floor_ms"] / numbers["cold_ms"], rel=1e-6)
    assert numbers["threads_used"] == 2
    assert found
    assert [source.name for source in made.sources] == ["the judge's clock", "processor counters", "valgrind"]
    assert all(source.have or source.get for source in made.sources)


def test_a_kernel_on_one_thread_is_found() -> None:
    """It uses half of two threads' time: its heavy loop has no pragma."""
    heavy = (
        "    for (int64_t e = 0; e < n * m; ++e) {\n        float v = a[e];\n"
        "        for (int k = 0; k < 40; ++k) v = v * 0.99f + 0.01f;\n        b[e] = v;\n    }\n    return 0;"
    )
    numbers, found, _ = profiled(kernel(after=heavy))
    assert "parallelism" in found
    assert numbers["thread_utilisation"] < 0.75


def test_barriers_in_a_row_are_found() -> None:
    """Two hundred regions a call, of next to nothing each: threads sleep at each of their ends."""
    barriers = (
        "    for (int turn = 0; turn < 200; ++turn) {\n        #pragma omp parallel for\n"
        "        for (int64_t i = 0; i < n; ++i)\n            for (int64_t j = turn % 2; j < m; j += 64) b[i * m + j] = a[i * m + j];\n"
        "    }\n    return 0;"
    )
    numbers, found, _ = profiled(kernel(after=barriers))
    assert "synchronisation" in found
    assert numbers["sleeps_a_call"] > 8


@needs_valgrind
def test_scalar_arithmetic_is_found_with_its_line() -> None:
    """A chain of multiply-adds that no compiler may vectorise, against the plain loop."""
    chain = kernel(
        "    float v = a[0];\n    for (int64_t e = 0; e < n * m; ++e)\n"
        "        for (int k = 0; k < 4; ++k) v = v * 0.99f + a[e];\n    b[0] = v;\n"
    )
    numbers, found, made = profiled(chain)
    assert "compute" in found
    assert numbers["vector_share"] < 0.5
    assert chain.splitlines()[made.cases[0].lines[0].line - 1].strip().startswith(("for", "v", "float", "b["))
    plain, _, _ = profiled(kernel())
    assert plain["instructions_an_element"] < 6
    assert numbers["instructions_an_element"] > plain["instructions_an_element"]


@needs_valgrind
def test_the_bytes_that_come_from_memory_are_counted() -> None:
    """Each of the two megabytes is touched once: as many bytes come in, within a few lines."""
    numbers, _, _ = profiled(kernel())
    assert numbers["bytes_from_memory"] == pytest.approx(2 * 4 * ELEMENTS, rel=0.02)


@needs_valgrind
def test_what_runs_under_valgrind_is_confined(tmp_path: Path) -> None:
    """It opens the kernel beside it, and no file elsewhere that is neither program nor library; it makes none there."""
    tries = kernel(
        '    if (!fopen("kernel.so", "r")) return 1;\n'
        '    const char *paths[] = {"/etc/passwd", "/etc/hostname", "/root", "/home", "/tmp", "/proc/1/environ"};\n'
        '    for (const char *path : paths)\n        if (fopen(path, "r")) return 1;\n'
        f'    if (fopen("{tmp_path}/made", "w")) return 1;\n',
        includes="#include <cstdio>\n",
    )
    tmp_path.chmod(0o777)
    build = runs.make(tries, callgrind.variant(), LIMITS)
    assert build.ok, build.log
    counts, _ = callgrind.count(build, BIG, BIG.cases[0], 3, LIMITS)
    assert counts.problem == ""
    assert counts.totals["Ir"] > 0
    assert list(tmp_path.iterdir()) == []


@needs_valgrind
def test_a_kernel_that_valgrind_cannot_run_is_told() -> None:
    """AVX-512 by name does not build for what valgrind knows; a crash under it is its own message."""
    vectors = kernel("    b[0] = _mm512_reduce_add_ps(_mm512_set1_ps(1.0f));\n", includes="#include <immintrin.h>\n")
    build = runs.make(vectors, callgrind.variant(), LIMITS)
    assert not build.ok
    crash = runs.make(kernel("    __builtin_trap();\n"), callgrind.variant(), LIMITS)
    counts, numbers = callgrind.count(crash, BIG, BIG.cases[0], 3, LIMITS)
    assert counts.problem.startswith("callgrind ended with code -4")
    assert numbers == {}


def test_a_machine_without_valgrind_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock's numbers are there all the same."""
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "valgrind" else found(name))
    numbers, _, made = profiled(kernel())
    assert "cold_ms" in numbers
    assert "counted_instructions" not in numbers
    assert made.sources[2].get == "apt-get install valgrind"


def test_counters_of_the_system_count_a_process() -> None:
    """A thousand fresh pages of a child make a thousand faults; what this machine has is named, or how to get it."""
    available, source = counters.look()
    if "page_faults" not in available.names:
        pytest.skip(f"no perf here: {source.detail}; {source.get}")
    fresh = kernel(
        "    char *own = static_cast<char *>(aligned_alloc(4096, 4096 * 1000));\n"
        "    for (int i = 0; i < 1000; ++i) own[4096 * i] = 1;\n    b[0] = own[4096];\n    free(own);\n",
        includes="#include <cstdlib>\n",
    )
    numbers, _, _ = profiled(fresh)
    plain, _, _ = profiled(kernel())
    assert numbers["page_faults_a_call"] >= 990
    assert plain["page_faults_a_call"] < 100
    assert source.have == ("instructions" in available.names)
    assert source.have or source.get


def test_a_profile_is_of_the_documented_form(tmp_path: Path) -> None:
    """A real one, through the form and back."""
    made, findings = profile.profile(kernel(), BIG, 3, LIMITS, 2)
    found = Diagnosis(
        "2026-01-01T00:00:00Z", "big_double", "cpp", "0" * 64, 3, "a processor", "g++", findings, profile=made
    )
    assert form.read(form.document(found)) == found


def test_what_does_not_build_or_run_is_told() -> None:
    """There is nothing to measure, and the reason is there."""
    made, findings = profile.profile(kernel("undeclared = 1;\n"), BIG, 3, LIMITS, 2)
    assert (made.cases, findings) == ((), ())
    assert made.message.startswith("there is nothing to run: kernel.cpp")
    made, _ = profile.profile(kernel("    return 5;\n"), BIG, 3, LIMITS, 2)
    assert made.message == "plain: the kernel returned 5, its own error"


def test_what_is_timed_is_the_judged_artefact() -> None:
    """The clock looks at what the judge would time; the counted build is another."""
    source = kernel()
    assert (
        profile.profile(source, BIG, 3, LIMITS, 1)[0].build.artefact_sha256 == cpp.build(source, LIMITS).artefact_sha256
    )
    assert runs.make(source, callgrind.variant(), LIMITS).artefact_sha256 != cpp.build(source, LIMITS).artefact_sha256
