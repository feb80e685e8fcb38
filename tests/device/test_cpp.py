"""The build step: flags, the compiler's text, the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from device import sandbox
from device.languages import cpp
from device.types import Limits
from tests.device.conftest import Judge
from tests.device.small import kernel

LIMITS = Limits()


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEBOOK_CACHE", str(tmp_path / "cache"))
    # The jail is not what these tests are about: take the one that the session has already compiled.
    (tmp_path / "cache").mkdir()
    monkeypatch.delenv("SAGEBOOK_CACHE")
    made = sandbox.cache_folder() / "native"
    sandbox.native()
    (tmp_path / "cache" / "native").symlink_to(made)
    monkeypatch.setenv("SAGEBOOK_CACHE", str(tmp_path / "cache"))


def test_a_compile_error_brings_the_compilers_text(judge: Judge) -> None:
    """The summary is the first error with its line; the log has no path of this machine."""
    data = judge(kernel("undeclared = 1;\n")).data
    assert data["outcome"] == "compile_error"
    assert data["summary"].startswith("kernel.cpp:10:1: error: 'undeclared' was not declared in this scope")
    assert data["compile"]["ok"] is False
    assert "undeclared" in data["compile"]["log"]
    assert "/kernel.cpp" not in data["compile"]["log"]
    assert (data["verify"], data["measure"], data["candidate"]["artefact_sha256"]) == (None, None, None)


def test_what_the_linker_misses_is_a_compile_error(judge: Judge) -> None:
    """A call to a function that nobody defines is found before anything runs."""
    data = judge(kernel("cblas_sgemm();\n", includes="void cblas_sgemm();\n")).data
    assert data["outcome"] == "compile_error"
    assert "undefined reference to `cblas_sgemm()'" in data["summary"]


def test_a_missing_entry_point_is_a_compile_error(judge: Judge) -> None:
    """A kernel without extern "C" has another name to the loader."""
    data = judge('#include "sagebook_kernel.h"\nint other() { return 0; }\n').data
    assert data["outcome"] == "compile_error"
    assert 'no extern "C" function sagebook_kernel' in data["summary"]


def test_the_command_says_how_it_was_built(judge: Judge) -> None:
    """Base flags, then what the source asked for."""
    data = judge("// flags: -ffast-math -funroll-loops\n" + kernel()).data
    assert data["outcome"] == "correct"
    command = data["compile"]["command"]
    assert command[:6] == ["g++", "-std=c++17", "-O3", "-march=native", "-fopenmp", "-shared"]
    assert command[-6:] == ["-ffast-math", "-funroll-loops", "-I.", "-o", "kernel.so", "kernel.cpp"]


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=x.so",
        "-include/etc/passwd",
        "-Wl,-rpath,/x",
        "-B/tmp",
        "@file",
        "-specs=x",
        "-lcblas",
        "-O0;id",
        "-march=x",
    ],
)
def test_a_flag_that_is_not_on_the_list_is_refused(flag: str, judge: Judge) -> None:
    """The flag is named; nothing is compiled."""
    data = judge(f"// flags: -O2 {flag}\n" + kernel()).data
    assert (data["outcome"], data["summary"]) == ("refused", f"flags: {flag} is not an allowed compiler flag")


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("// flags: -O2\nint x;", ("-O2",)),
        ("// a kernel\n//flags:  -O2   -Ofast \n", ("-O2", "-Ofast")),
        ("int x; // flags: -O2", ()),
        ("\n" * 10 + "// flags: -O2", ()),
    ],
)
def test_flags_come_from_a_comment_at_the_top(text: str, flags: tuple[str, ...]) -> None:
    """Of the first ten lines, a line that is nothing but the comment."""
    assert cpp.requested_flags(text) == flags


@pytest.mark.usefixtures("_own_cache")
def test_the_same_text_is_compiled_once() -> None:
    """The second build is the first one's artefact; other text or flags are another's."""
    first, second = cpp.build(kernel(), LIMITS), cpp.build(kernel(), LIMITS)
    assert (first.cached, second.cached) == (False, True)
    assert first.artefact == second.artefact is not None
    assert first.artefact_sha256 == second.artefact_sha256
    other = cpp.build("// flags: -O2\n" + kernel(), LIMITS)
    assert (other.cached, other.artefact == first.artefact) == (False, False)


@pytest.mark.usefixtures("_own_cache")
def test_a_kept_artefact_that_was_changed_is_compiled_anew() -> None:
    """What is run is always what was compiled: its hash is checked at each use."""
    first = cpp.build(kernel(), LIMITS)
    assert first.artefact is not None
    first.artefact.write_bytes(b"something else")
    again = cpp.build(kernel(), LIMITS)
    assert (again.cached, again.artefact_sha256) == (False, first.artefact_sha256)
    assert again.artefact is not None
    assert hashlib.sha256(again.artefact.read_bytes()).hexdigest() == first.artefact_sha256


@pytest.mark.usefixtures("_own_cache")
def test_a_failed_build_is_remembered_with_its_text() -> None:
    """Asking again brings the same words."""
    first, second = cpp.build(kernel("oops;\n"), LIMITS), cpp.build(kernel("oops;\n"), LIMITS)
    assert (first.outcome, second.outcome, second.cached) == ("compile_error", "compile_error", True)
    assert first.log == second.log


def test_a_compiler_bomb_is_a_matter_of_resources() -> None:
    """A template without end meets the limit of memory or of time, and comes back as that."""
    bomb = "template <int... N> struct A { using T = typename A<N..., sizeof...(N), 0, 1, 2, 3>::T; }; A<>::T t;\n"
    build = cpp.build(
        '#pragma GCC optimize("O1")\n' + kernel(includes=bomb), Limits(compile_seconds=2.0, compile_memory=300 << 20)
    )
    assert build.outcome in {"resource", "compile_error"}
    assert build.seconds < 4
    slow = cpp.build(kernel(includes=_SLOW), Limits(compile_seconds=0.5))
    assert (slow.outcome, slow.summary) == ("resource", "the compiler did not finish within 0.5 s")


_SLOW = """constexpr int busy(int n) { int s = 0; for (int i = 0; i < 260000; ++i) s = (s + n * i) % 1000003; return s; }
template <int N> struct Sum { static constexpr int value = busy(N) + Sum<N - 1>::value % 7; };
template <> struct Sum<0> { static constexpr int value = 0; };
static_assert(Sum<400>::value >= 0, "");
"""


@pytest.mark.usefixtures("_own_cache")
def test_source_is_any_text() -> None:
    """Empty, binary, wide or cut in the middle: always a verdict on the candidate, never an error of the judge."""
    for text in ("", "\0\0", "\ud800", "é" * 10, kernel()[:100], '"', "/*", 'R"(', "#", "\\", "// flags:"):
        assert cpp.build(text, LIMITS).outcome in {"compile_error", "refused"}, text
