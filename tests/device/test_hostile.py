"""Kernels that hang, crash, fork, fill memory, write files or cheat: each comes back as what it is, and leaves nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from device import Limits
from tests.device.conftest import QUICK, Judge
from tests.device.small import ROW_SUM, kernel, row_sum

THREADS = "#include <thread>\n#include <unistd.h>\n"

DEEP = """__attribute__((noinline)) volatile char *deep(int n) {
    volatile char room[4096]; room[n % 4096] = 1; return n ? deep(n + 1) + room[0] : nullptr; }
"""

DEATHS = {
    "null pointer": ("*(volatile int *)0 = 1;", "", "crash", "SIGSEGV at address 0x0"),
    "abort": ("abort();", "#include <cstdlib>\n", "crash", "SIGABRT"),
    "uncaught exception": ("throw 42;", "", "crash", "SIGABRT"),
    "division by zero": ("volatile int z = 0; volatile int q = 7 / z; (void)q;", "", "crash", "SIGFPE"),
    "illegal instruction": ("__builtin_trap();", "", "crash", "SIGILL"),
    "own signal": ("raise(SIGTERM);", "#include <csignal>\n", "crash", "SIGTERM"),
    "exit": ("exit(0);", "#include <cstdlib>\n", "crash", "exit code 0"),
    "quick exit": ("_exit(3);", "#include <unistd.h>\n", "crash", "exit code 3"),
    "own error": ("return 5;", "", "wrong", "returned 5"),
    "endless recursion": ("volatile char *p = deep(1); (void)p;", DEEP, "crash", "SIGSEGV"),
    "hang": ("for (volatile int i = 0;; i = 1) {}", "", "hang", "did not return within 1 s"),
    "sleep": ("for (;;) pause();", "#include <unistd.h>\n", "hang", "did not return within 1 s"),
    "deadlock": ("std::mutex lock; lock.lock(); lock.lock();", "#include <mutex>\n", "hang", "did not return"),
    "memory touched": ("for (;;) { char *p = (char *)malloc(1 << 20); for (int i = 0; i < 1 << 20; ++i) p[i] = 1; keep = p; }",
        "#include <cstdlib>\nchar *volatile keep;\n", "resource", "ran out of memory"),
    "memory by new": ("for (;;) keep = new char[64 << 20]();", "char *volatile keep;\n", "resource", "ran out of memory"),
    "thread bomb": ("for (;;) new std::thread([] { for (;;) pause(); });", "#include <thread>\n#include <unistd.h>\n",
        "resource", "memory or threads"),
    "file by stdio": ('FILE *f = fopen("/tmp/sagebook-was-here", "w"); (void)f;', "#include <cstdio>\n", "refused", "openat"),
    "file by stream": ('std::ofstream("answers") << 1;', "#include <fstream>\n", "refused", "openat"),
    "unlink": ('remove("/kernel.so");', "#include <cstdio>\n", "refused", "unlink"),
    "kill its parent": ("kill(getppid(), 9);", "#include <csignal>\n#include <unistd.h>\n", "refused", "system call"),
    "kill everything": ("kill(-1, 9);", "#include <csignal>\n", "refused", "kill"),
    "executable memory": ("mmap(0, 4096, 7, 0x22, -1, 0);", "#include <sys/mman.h>\n", "refused", "mmap"),
    "alarm": ("ualarm(1000, 0);", "#include <unistd.h>\n", "refused", "setitimer"),
    "forged reply": ('for (int fd = 3; fd < 64; ++fd) if (write(fd, "0123456789012345678901234567890", 32) == 32) break;',
        "#include <unistd.h>\n", "refused", ""),
    "loading": ("", "#include <cstdlib>\nstruct Early { Early() { abort(); } } early;\n", "crash", "while it was being loaded"),
    "hang at loading": ("", "#include <unistd.h>\nstruct Early { Early() { for (;;) pause(); } } early;\n", "hang", "1 s"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_comes_back_as_what_it_was(name: str, judge: Judge) -> None:
    """Outcome and words name what happened; the judge lives on and no process of the kernel is left."""
    body, includes, outcome, words = DEATHS[name]
    begin = time.monotonic()
    data = judge(kernel(body + "\n", includes=includes)).data
    assert (data["outcome"], words in data["summary"]) == (outcome, True), data["summary"]
    assert time.monotonic() - begin < 8
    assert data["compile"]["ok"]
    assert data["verify"]["ok"] is False
    assert data["verify"]["failure"]["message"] in data["summary"]
    assert data["measure"] is None
    assert children() == []
    assert not Path("/tmp/sagebook-was-here").exists()  # noqa: S108  (the place that a kernel would choose)


def children() -> list[str]:
    """Processes that this one has started and that are still there."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return text.split()


def test_a_fork_bomb_is_refused_before_it_runs_and_when_it_runs(judge: Judge) -> None:
    """The text names fork on its line; a fork that the text does not show ends at the first call."""
    plain = judge(kernel("for (;;) fork();\n", includes="#include <unistd.h>\n")).data
    assert plain["outcome"] == "refused"
    assert "line 11: fork" in plain["summary"]
    assert plain["verify"] is None
    shown_as_spawn = kernel("std::system_error e(0, std::generic_category()); daemon(0, 0);\n",
        includes="#include <unistd.h>\n#include <system_error>\n")  # fmt: skip
    hidden = judge(shown_as_spawn).data
    assert hidden["outcome"] == "refused"
    assert "clone" in hidden["summary"]
    assert children() == []


EACH = "for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < m; ++j) b[i * m + j] = {}; return 0;"


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("zeros", "for (int64_t i = 0; i < n * m; ++i) b[i] = 0; return 0;", "expected"),
        ("nothing", "return 0;", "never written"),
        ("a copy", EACH.format("a[i * s + j * t]"), "expected"),
        ("no tail", "for (int64_t i = 0; i < n * m / 8 * 8; ++i) b[i] = 2 * a[i / m * s + i % m * t]; return 0;", "never written"),
        ("dense only", "for (int64_t i = 0; i < n * m; ++i) b[i] = 2 * a[i]; return 0;", "padded/given"),
        ("absolute", EACH.format("a[i * s + j * t] > 0 ? 2 * a[i * s + j * t] : -2 * a[i * s + j * t]"), "expected"),
        ("half precision", EACH.format("2 * (float)(_Float16)a[i * s + j * t]"), "allowed error"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_wrong(name: str, body: str, words: str, judge: Judge) -> None:
    """Zeros, no answer, a copy, a missing tail, a layout taken for another, lost signs, lost digits."""
    data = judge(kernel(after=body)).data
    assert (data["outcome"], name) == ("wrong", name)
    failure = data["verify"]["failure"]
    assert words in failure["message"] or words in failure["case"]
    assert failure["index"] is not None


def test_the_first_bad_element_is_the_one_that_was_spoiled(judge: Judge) -> None:
    """The kernel writes 1000 at [1, 2] where that exists: case plain (8 x 32) fails there, expected twice the input."""
    spoil = kernel("").replace("    return 0;", "    if (n > 1 && m > 3) b[m + 2] = 1000.0f;\n    return 0;")
    failure = judge(spoil).data["verify"]["failure"]
    assert failure["index"] == [1, 2]
    assert failure["got"] == 1000.0
    assert -20 < failure["expected"] < 20
    assert failure["max_abs_error"] == pytest.approx(1000.0 - failure["expected"])
    assert failure["max_rel_error"] == pytest.approx(failure["max_abs_error"] / abs(failure["expected"]))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("const_cast<float *>(a)[0] = 0;", "changed input 0, first at element 0"),
        ("b[n * m] = 1.0f;", "wrote 1 bytes behind the end of output 0"),
        ("b[-1] = 1.0f;", "outside of every tensor"),
        ("b[n * m + 900] = 1.0f;", "wrote 3601 bytes behind the end of output 0"),
    ],
)
def test_memory_that_is_not_the_output_stays_as_it_was(body: str, words: str, judge: Judge) -> None:
    """A right answer does not pay for a changed input or a write beside the output."""
    source = kernel("").replace("    return 0;", f"    {body}\n    return 0;")
    data = judge(source).data
    assert (data["outcome"], words in data["summary"]) == ("wrong", True), data["summary"]


def test_a_far_write_is_a_crash(judge: Judge) -> None:
    """Beyond the arena there is no memory at all."""
    data = judge(kernel("b[1 << 28] = 1.0f;\n")).data
    assert (data["outcome"], "SIGSEGV" in data["summary"]) == ("crash", True)


def test_a_stored_answer_is_found_by_the_next_inputs(judge: Judge) -> None:
    """A kernel that computes once for each address and shape, and then replays, meets other numbers at that address."""
    replay = kernel(after="""
    static float store[64][4096]; static void *seen[64]; static int64_t size[64]; static int used;
    for (int k = 0; k < used; ++k)
        if (seen[k] == x.data && size[k] == n * m) { for (int64_t i = 0; i < n * m; ++i) b[i] = store[k][i]; return 0; }
    for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < m; ++j) b[i * m + j] = 2.0f * a[i * s + j * t];
    if (used < 64) { for (int64_t i = 0; i < n * m; ++i) store[used][i] = b[i]; seen[used] = x.data; size[used++] = n * m; }
    return 0;""")  # fmt: skip
    data = judge(replay).data
    assert data["outcome"] == "wrong"
    assert data["verify"]["failure"]["case"].endswith(("changed", "x3", "x0.01", "x-1"))


def test_a_kernel_that_changes_its_mind_is_found_by_the_repeat(judge: Judge) -> None:
    """The last bit follows the address of the stack, which differs between two processes."""
    shaky = kernel("").replace(
        "    return 0;",
        "    if (reinterpret_cast<uintptr_t>(&y) >> 12 & 7) for (int64_t i = 0; i < n * m; ++i) "
        "b[i] *= 1.0f + 6e-8f * ((reinterpret_cast<uintptr_t>(&y) >> 12) & 7);\n    return 0;",
    )
    outcomes = {judge(shaky, seed=seed).data["summary"] for seed in range(3)}
    assert any("a repeat with the same inputs gave other bytes" in summary for summary in outcomes), outcomes


@pytest.mark.parametrize("does", ["volatile long n = 0; for (;;) n = n + 1;", "for (;;) usleep(1000);", "pause();"])
@pytest.mark.parametrize("pool", ["", "#pragma omp parallel for\n"])
def test_a_thread_that_stays_is_refused_busy_or_asleep(does: str, pool: str, judge: Judge) -> None:
    """One thread is enough, also beside OpenMP's pool, which is full from the start, and however few rows a call has."""
    loop = "for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < m; ++j) b[i * m + j] = 2.0f * a[i * s + j * t];"
    start = f"static std::thread *w; if (!w) w = new std::thread([] {{ {does} }});\n"
    source = kernel(start, includes=THREADS, after=f"{pool}{loop}\nreturn 0;")
    data = judge(source, limits=Limits(call_seconds=5.0, threads=4)).data
    assert data["outcome"] == "refused"
    assert data["verify"]["passed"] == 0
    found = f"{5 if pool else 2} threads after a call where {4 if pool else 1} may stay"
    assert found in data["summary"], data["summary"]


def test_a_thread_that_ends_with_the_call_is_honest(judge: Judge) -> None:
    """Only what is left behind counts."""
    assert judge(kernel("std::thread([] {}).join();\n", includes="#include <thread>\n")).data["outcome"] == "correct"


def test_a_float_accumulator_over_a_long_row_is_wrong_and_a_double_is_right(judge: Judge) -> None:
    """Over 2^20 squares a running float sum is thousands of roundoffs off; a double sum is not one."""
    data = judge(row_sum("float"), ROW_SUM).data
    assert data["outcome"] == "wrong"
    assert data["verify"]["failure"]["case"].startswith("long/")
    assert judge(row_sum("double"), ROW_SUM).data["outcome"] == "correct"


def test_printing_is_allowed_and_bounded(judge: Judge) -> None:
    """A kernel that floods its output neither blocks nor fills anything."""
    source = kernel(
        'for (int i = 0; i < 100000; ++i) fprintf(stderr, "line %d\\n", i);\n', includes="#include <cstdio>\n"
    )
    assert judge(source, limits=QUICK).data["outcome"] == "correct"


def test_nothing_of_the_machine_is_in_sight(judge: Judge) -> None:
    """The kernel finds no file of the machine, no other process and no secret in its environment."""
    look = """
    if (getenv("HOME") || getenv("SAGEBOOK_JUDGE_KEY") || getenv("XDG_DATA_HOME")) return 11;
    if (fopen("/etc/passwd", "r")) return 12;
    if (fopen("/proc/self/mem", "r")) return 13;
    if (fopen("/dev/shm", "r") || fopen("/", "r")) return 14;
    if (getppid() > 1) return 15;
    """
    data = judge(kernel(look, includes="#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n")).data
    assert data["outcome"] in {"correct", "refused"}, data["summary"]


def test_a_constructor_reads_no_file_of_the_machine(judge: Judge) -> None:
    """While it is being loaded a library may open files; in a private root there are none."""
    early = """#include <cstdio>
static int found;
struct Early { Early() { const char *all[] = {"/etc/passwd", "/proc/self/status", "/usr/bin/env"};
    for (const char *p : all) if (FILE *f = fopen(p, "r")) { found = 1; fclose(f); } } } early;
"""
    assert judge(kernel("if (found) return 12;\n", includes=early)).data["outcome"] == "correct"
