"""What GCC's sanitizers print, as kept from real runs, read into reports."""

from __future__ import annotations

from device.diagnose import sanitizer_text
from device.diagnose.sanitizer_text import Place

WHERE = {
    "0x1a2b": (Place("pack(float*)", "kernel.cpp", 7), Place("sagebook_candidate", "kernel.cpp", 20)),
    "0x1c00": (Place("sagebook_candidate", "kernel.cpp", 5),),
    "0x1d00": (Place("sagebook_kernel", "wrap.cpp", 150),),
}

HEAP = """=================================================================
==2==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000020 at pc 0x7f1 bp 0x7f2 sp 0x7f3
READ of size 64 at 0x602000000020 thread T1
    #0 0x7f4a2b  (/kernel.so+0x1a2b)
    #1 0x7f4d00  (/kernel.so+0x1d00)
    #2 0x7f5e4f  (/usr/lib/x86_64-linux-gnu/libgomp.so.1+0x1de4f)

0x602000000020 is located 0 bytes to the right of 16-byte region [0x602000000010,0x602000000020)
allocated by thread T0 here:
    #0 0x7f6  (/lib/x86_64-linux-gnu/libasan.so.8+0xb94)
    #1 0x7f4c00  (/kernel.so+0x1c00)

SUMMARY: AddressSanitizer: heap-buffer-overflow (/kernel.so+0x1a2b)
"""

WILD = """AddressSanitizer:DEADLYSIGNAL
=================================================================
==2==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000010 (pc 0x7f4 bp 0x7f2 sp 0x7f3 T0)
==2==The signal is caused by a WRITE memory access.
==2==Hint: address points to the zero page.
    #0 0x7f4c00  (/kernel.so+0x1c00)

AddressSanitizer can not provide additional info.
"""

RACE = """==================
WARNING: ThreadSanitizer: data race (pid=2)
  Write of size 4 at 0x7b04000000 by thread T1:
    #0 <null> <null> (kernel.so+0x1a2b)
    #1 <null> <null> (libgomp.so.1+0x1de4f)

  Previous read of size 8 at 0x7b04000000 by main thread:
    #0 <null> <null> (kernel.so+0x1c00)
    #1 <null> <null> (kernel.so+0x1d00)

  Thread T1 (tid=7, running) created by main thread at:
    #0 <null> <null> (libtsan.so.2+0x5e686)

SUMMARY: ThreadSanitizer: data race (/kernel.so+0x1a2b)
==================
"""

UNDEFINED = (
    "kernel.cpp:9:7: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'\n"
    "wrap.cpp:30:1: runtime error: shift exponent 40 is too large for 32-bit type 'int'\n"
    "kernel.cpp:12:3: runtime error: store to misaligned address 0x7f1 for type 'float', which requires 4 byte alignment\n"
    "0x7f1: note: pointer points here\n"
    "kernel.cpp:14:3: runtime error: something that no list knows\n"
)


def test_an_overflow_of_the_heap_names_access_place_and_origin() -> None:
    """64 bytes read right behind 16, in a function that was inlined, from memory of line 5."""
    (report,) = sanitizer_text.read(HEAP, WHERE)
    assert (report.sanitizer, report.kind) == ("address", "heap-buffer-overflow")
    assert (report.access, report.size, report.line, report.function) == ("read", 64, 7, "pack")
    assert report.message == (
        "read 64 bytes 0 bytes after 16-byte region (its memory came from, or was freed at, sagebook_kernel kernel.cpp:5)"
    )
    assert report.frames == ("pack kernel.cpp:7", "sagebook_kernel kernel.cpp:20")
    assert report.other == ("sagebook_kernel kernel.cpp:5",)


def test_a_wild_write_is_read_too() -> None:
    """A signal, with the kind of its access and no size."""
    (report,) = sanitizer_text.read(WILD, WHERE)
    assert (report.kind, report.access, report.size, report.line) == ("SEGV", "write", None, 5)


def test_a_race_names_both_sides() -> None:
    """4 bytes written on line 7, 8 bytes read on line 5."""
    (report,) = sanitizer_text.read(RACE, WHERE)
    assert (report.sanitizer, report.kind, report.access, report.size) == ("thread", "data race", "write", 4)
    assert report.message == "write of 4 bytes at kernel.cpp:7 against a read of 8 bytes at kernel.cpp:5"
    assert report.other == ("sagebook_kernel kernel.cpp:5",)


def test_undefined_behaviour_names_line_and_column() -> None:
    """An overflow, a misaligned store, one of a kind without a name; the judge's own file is passed over."""
    reports = list(sanitizer_text.read(UNDEFINED, {}))
    assert [(r.kind, r.line, r.column, r.access) for r in reports] == [
        ("signed-overflow", 9, 7, None),
        ("misaligned-access", 12, 3, "write"),
        ("undefined-behaviour", 14, 3, None),
    ]


def test_other_text_is_no_report() -> None:
    """A kernel may print what it likes; a mangled report is read as far as it goes."""
    assert list(sanitizer_text.read("hello\n==2==ERROR: something\n", WHERE)) == []
    (cut,) = sanitizer_text.read(HEAP[:150], WHERE)
    assert (cut.kind, cut.line, cut.size) == ("heap-buffer-overflow", None, None)


def test_addresses_and_their_lines() -> None:
    """Those of the candidate alone are looked up; addr2line answers with pairs, innermost first."""
    assert sorted(set(sanitizer_text.addresses(HEAP))) == ["0x1a2b", "0x1c00", "0x1d00"]
    said = (
        "0x0000000000001a2b\npack(float*)\n/tmp/x/kernel.cpp:7 (discriminator 3)\nsagebook_candidate\n"
        "/tmp/x/kernel.cpp:20\n0x0000000000001c00\n??\n??:0\n0x1d00\nf\n??:?\n"
    )
    assert sanitizer_text.places(said) == {
        "0x1a2b": (Place("pack(float*)", "kernel.cpp", 7), Place("sagebook_candidate", "kernel.cpp", 20)),
        "0x1c00": (Place("??", "??", 0),),
        "0x1d00": (),
    }
