"""What the text of a candidate may not hold, and the ways to hide it."""

from __future__ import annotations

import pytest

from device.cheats import SOURCE_CHECKS, check_source, first_refusal, read_source
from tests.device.conftest import Judge
from tests.device.small import kernel


def refusal(text: str) -> str:
    """The detail of the first refused check, or nothing."""
    check = first_refusal(check_source(text))
    return "" if check is None else check.detail


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("int r = system(cmd);", "line 2: system"),
        ("if (fork() == 0) {}", "line 2: fork"),
        ("void *p = dlopen (name, 1);", "line 2: dlopen"),
        ("syscall(57);", "line 2: syscall"),
        ("::ptrace(0, 0, 0, 0);", "line 2: ptrace"),
        ("int s = socket(2, 1, 0);", "line 2: socket"),
        ('asm("syscall");', "line 2: asm"),
        ('__asm__ volatile("syscall");', "line 2: __asm__"),
        ("#include </etc/passwd>", "line 2: #include </etc/passwd>"),
        ("#include <../../secret>", "line 2: #include <../../secret>"),
        ('#include "/root/judge.key"', "line 2: #include"),
        ("#include WHAT", "line 2: #include WHAT"),
        ('#embed "/etc/passwd"', "line 2: #embed"),
        ("%:include </etc/passwd>", "line 2: #include"),
        ("#define CALL(a, b) a##b", "line 2: ##"),
        ("fo\\\nrk();", "line 2: fork"),
        ("/* harmless */ execve /* really */ (path, 0, 0);", "line 2: execve"),
        ("auto q = u'\"'; system(c); auto r = u'\"';", "line 2: system"),
        ('#define FOOR\nFOOR"(" ; popen(c, m); ")";', "line 3: popen"),
        ("int big = 1'000; fork(); int more = 2'000;", "line 2: fork"),
    ],
)
def test_forbidden_text_is_refused_with_its_line(line: str, named: str) -> None:
    """Each is found by the line it is on, comments, literals and joined lines notwithstanding."""
    assert refusal("// a kernel\n" + line).startswith(named)


@pytest.mark.parametrize(
    "text",
    [
        "// system(cmd) would be wrong here",
        '/* asm("nop") */ int x = 0;',
        'const char *s = "fork()";',
        'auto s = R"(dlopen("x"))";',
        "float fork_join = 1; int system_count = 2;",
        '#include <cmath>\n#include <sys/types.h>\n#include <immintrin.h>\n#include "sagebook_kernel.h"',
        "#pragma omp parallel for simd reduction(+ : sum)",
        "int bind = 3; int y = bind + 1;",
        "auto c = '\\''; auto d = '\"'; float e = 1'024.5e-3f;",
    ],
)
def test_honest_text_passes(text: str) -> None:
    """Words in comments and literals, and names that only begin alike, are no findings."""
    assert refusal(text) == ""


def test_line_numbers_survive_joined_lines() -> None:
    """A joined line counts as the lines it was."""
    source = read_source("int a; \\\nint b;\nint c;")
    assert [line for line, word in source.words() if word == "c"] == [3]


def test_a_thread_is_noted_not_refused() -> None:
    """A thread that ends with the call is honest; whether it does is seen at run time."""
    checks = {check.name: check for check in check_source("std::async(f);")}
    assert checks["threads"].ok
    assert "line 1: async" in checks["threads"].detail


def test_every_check_says_which_cheats_it_is_for() -> None:
    """A check without a reason would only annoy."""
    assert all(check.cheats for check in SOURCE_CHECKS)


def test_a_call_hidden_from_the_text_is_found_in_the_shared_object(judge: Judge) -> None:
    """An alias by attribute leaves no call in the text; the name is still taken from the C library."""
    source = kernel("if (n < 0) hidden(nullptr);\n", includes='extern "C" int hidden(const char *) __asm("system");\n')
    assert judge(source).data["summary"].startswith("no inline assembly: line 1: __asm")
    reached = kernel("int (*run)(const char *) = system;\nif (n < 0) run(nullptr);\n", includes="#include <cstdlib>\n")
    data = judge(reached).data
    assert data["outcome"] == "refused"
    assert "system" in data["summary"]
    assert data["verify"] is None
