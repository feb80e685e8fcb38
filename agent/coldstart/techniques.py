"""The techniques of CPU kernels that a source can show: how the text gives each away, why it helps, when to use it.

`Change:` values use the names of `agent.models.search.space`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.port import StageKind

_BOTH: tuple[StageKind, ...] = ("correctness", "optimization")
_SPEED: tuple[StageKind, ...] = ("optimization",)
_ROWS = ("reduction",)
_EXP = ("elementwise", "reduction", "attention", "matmul")


@dataclass(frozen=True, slots=True)
class Technique:
    """One thing that a kernel can do, and how its text gives it away."""

    key: str
    title: str
    shows: str
    """A regular expression that matches where a source does it."""
    instead: str
    """A regular expression for what a source that does not do it has in that place."""
    reason: str
    when: str
    changes: tuple[str, ...]
    stages: tuple[StageKind, ...] = _SPEED
    families: tuple[str, ...] = ()
    """Operator families in which it is looked for and to which it applies; empty means any."""
    unless: str = ""
    """The technique does not count where this matches, too."""


_PLAIN_LOOP = r"for \(int64_t \w+ = [^;]+; \w+ < [^;]+; \+\+\w+\)[^\n]*"

TECHNIQUES: tuple[Technique, ...] = (
    Technique(
        "threads-threshold",
        "Share rows among threads, but only when there is enough work for two",
        r"#pragma omp parallel[^\n]*\bif\s*\([^\n]*",
        r"#pragma omp parallel[^\n]*|work\(0, [^\n]*",
        "Rows are independent, so the time of large inputs divides by the number of cores. Opening a parallel region "
        "costs several microseconds, which is more than a small input takes on one core.",
        "Use it where outputs are independent and sizes vary. Some tens of thousands of elements is where it "
        "begins to pay.",
        ("threads = threshold",),
    ),
    Technique(
        "threads-rows",
        "Share independent rows among all cores",
        r"#pragma omp parallel[^\n]*",
        r"work\(0, [^\n]*|" + _PLAIN_LOOP,
        "One core reaches a part of the memory bandwidth and of the arithmetic of the machine; a static schedule "
        "gives each "
        "thread neighbouring rows, so no cache line is written by two cores.",
        "Use it where outputs are independent and the input is large: from about a hundred thousand bytes.",
        ("threads = rows",),
    ),
    Technique(
        "vectors-written-out",
        "Write loops in vectors as wide as the machine has",
        r"__attribute__\(\(vector_size\([^)]*\)\)\)",
        _PLAIN_LOOP,
        "A vector instruction handles 8 or 16 floats in the time of one. The compiler leaves a loop scalar where a "
        "call, a "
        "comparison or the order of a sum stands in the way; vectors written out do not depend on its mood.",
        "Use it in loops over dense data; rows that are not dense are copied together first.",
        ("layout = fast_path", "simd = vector"),
        families=("elementwise", "reduction", "matmul", "attention"),
    ),
    Technique(
        "vectors-by-pragma",
        "Ask for vectors with `#pragma omp simd`",
        r"#pragma omp simd[^\n]*",
        _PLAIN_LOOP,
        "The pragma promises that iterations are independent and allows a sum to be reordered, which is what keeps the "
        "compiler from vectorizing a reduction.",
        "Use it for simple loops over dense data, with a `reduction` clause for sums.",
        ("simd = pragma",),
        families=("elementwise", "reduction", "matmul", "attention"),
    ),
    Technique(
        "full-width-vectors",
        "Use the full width of the registers: 16 floats with AVX-512",
        r"__AVX512F__|kLanes = 16",
        r"kLanes = 8[^\n]*",
        "A machine with AVX-512 has 32 registers of 16 floats; 8 lanes leave half of each unit idle.",
        "Use it in loops that compute; a loop that only waits for memory gains little.",
        ("lanes = 16",),
        families=("elementwise", "reduction", "matmul", "attention"),
    ),
    Technique(
        "exp-polynomial",
        "Compute exp in vectors by a polynomial",
        r"[^\n]*1\.44269504[^\n]*",
        r"[^\n]*(?:std::exp|lanes_exp)\([^\n]*",
        "The library's exp is called once an element and takes tens of cycles. With x = n ln 2 + r the power of "
        "two goes "
        "into the exponent bits and a polynomial of degree 6 gives exp(r) to float accuracy, for a whole vector at "
        "once.",
        "Use it wherever exp is taken of many floats: softmax, log-sum-exp, sigmoid, SiLU, attention.",
        ("exp = polynomial",),
        families=_EXP,
    ),
    Technique(
        "erf-polynomial",
        "Compute erf or the normal distribution in vectors by a fit",
        r"[^\n]*(?:erf_poly|Phi\(x\)|gelu_lanes|-0\.0291089)[^\n]*",
        r"[^\n]*(?:std::erf|lanes_erf)\([^\n]*",
        "The library's erf is a scalar call with branches. A rational or polynomial fit within float accuracy is some "
        "twenty multiply-adds for a whole vector.",
        "Use it for exact GELU, alone or behind a matrix product. The tanh form is another function.",
        ("erf = polynomial",),
        families=("elementwise", "matmul"),
        unless=r"std::erfc?\(|lanes_erf\(",
    ),
    Technique(
        "independent-accumulators",
        "Keep four independent partial results in a reduction",
        r"(?:vfloat|vdouble|Vec)\s+\w+\[(?:4|CHAINS)\][^\n]*|vfloat s0 = \{\}, s1 = \{\}[^\n]*|\w+_v1\b[^\n]*",
        r"\w+_v0 [+*]?= [^\n]*|(?:sum|top|best) [+]?= [^\n]*",
        "An addition or comparison takes four cycles, and each one waits for the last when there is one "
        "accumulator. Four "
        "chains keep the unit busy. They also shorten each chain of rounding errors.",
        "Use it for sums, maxima and dot products over rows that fit in cache.",
        ("accumulators = 4",),
        families=_ROWS,
    ),
    Technique(
        "sum-in-blocks",
        "Sum long rows in blocks",
        r"for \(int64_t (?:begin|from) = 0; [^\n]*(?:BLOCK|512)[^\n]*",
        r"(?:float|Vec) sum\w* = [^\n]*",
        "The rounding error of one running float sum grows with its length; that of sums of blocks grows with the "
        "block.",
        "Use it for rows of more than some thousand elements; short rows need nothing.",
        ("accumulator = blocked",),
        stages=_BOTH,
        families=_ROWS,
        unless=r"register_tile",
    ),
    Technique(
        "sum-in-double",
        "Sum in double where digits matter",
        r"(?:vdouble|DoubleVec)\s+\w+[^\n]*|double sum = [^\n]*",
        r"float sum\w* = [^\n]*",
        "A double keeps 29 more bits, so no length of row loses a float's digits; the loop still reads floats, and "
        "a loop "
        "that waits for memory does not become slower by it.",
        "Use it for means and sums of long rows, and wherever two large sums are subtracted.",
        ("accumulator = double",),
        stages=_BOTH,
        families=_ROWS,
    ),
    Technique(
        "shift-by-maximum",
        "Subtract the row's maximum before exp",
        r"[^\n]*exp\w*\([^\n]*- (?:shift|top|raised|r\d)[^\n]*",
        r"[^\n]*exp\w*\([^\n]*",
        "exp overflows float above 88.7, and infinity over infinity is not-a-number. Taking the maximum off "
        "changes nothing "
        "in the quotient and makes every exponent at most zero.",
        "Always, in softmax, log-sum-exp and attention.",
        ("softmax_shift = max",),
        stages=_BOTH,
        families=("reduction", "attention"),
        unless=r"old_shift",
    ),
    Technique(
        "keep-exponentials",
        "Leave the exponentials in the output and scale them afterwards",
        r"store\(y \+ \w+, (?:a|e|t\w*e)\);[^\n]*",
        r"[^\n]*exp\w*\([^\n]*/ sum[^\n]*",
        "The result needs the same exp that the sum needed. A row stays in the first cache between the passes, so "
        "reading it "
        "back costs a few cycles a vector; computing exp again costs tens.",
        "Use it in softmax, where the output has the size of the input.",
        ("exp_reuse = store",),
        families=_ROWS,
    ),
    Technique(
        "multiply-by-reciprocal",
        "Divide once a row, multiply for each element",
        r"[^\n]*1\.0f? / (?:total|sum|std::sqrt)[^\n]*",
        r"[^\n]*/ (?:sum|r\d)[^\n]*",
        "A vector division occupies its unit for eight to sixteen cycles, a multiplication for one.",
        "Use it where every element of a row is divided by the same number; the result moves by one rounding.",
        ("division = reciprocal",),
        families=("reduction", "attention"),
    ),
    Technique(
        "dense-fast-path",
        "Run dense code where the stride is 1, and copy other rows together first",
        r"if \((?:\w+\.)?step == 1\)[^\n]*|together\([^\n]*|dense\((?:x|t|out)\)[^\n]*|sj == 1 && ey == 1[^\n]*|"
        r"from_column == 1[^\n]*|dense_columns\([^\n]*",
        r"[^\n]*(?:\* s\d|place\(v\d)[^\n]*",
        "With a stride that is only known at run time the compiler can load one element at a time. Nearly every "
        "input is "
        "dense; a strided row is copied once into a buffer that stays in cache, and the same fast loop handles it.",
        "Use it always: it is right for every stride and opens the way for vectors.",
        ("layout = fast_path",),
        stages=_BOTH,
    ),
    Technique(
        "square-tiles",
        "Copy a transposition by square tiles",
        r"constexpr int64_t BLOCK = 64[^\n]*|kTile = \d+[^\n]*",
        _PLAIN_LOOP,
        "One side of a transposition touches a new cache line with each element. In a tile of 64 x 64 floats all "
        "lines of both "
        "sides stay in the first cache until each of their 16 elements was used.",
        "Use it when both axes are longer than a cache line.",
        ("tile = 64",),
        families=("layout",),
    ),
    Technique(
        "turn-in-registers",
        "Turn small tiles in registers with shuffles",
        r"__builtin_shuffle[^\n]*",
        r"[^\n]*from_column\] *;[^\n]*",
        "An 8 x 8 tile is 8 vector loads, 24 shuffles and 8 vector stores, instead of 64 loads and 64 stores.",
        "Use it inside larger tiles, where both sides are dense along their own axis.",
        ("tile = 64", "simd = vector"),
        families=("layout",),
    ),
    Technique(
        "register-tile",
        "Keep a tile of the product in registers",
        r"vfloat acc\[M\]\[2\][^\n]*|Vec sums\[R\]\[V\][^\n]*",
        r"[^\n]*sums?(?:\[\w+\])? \+= [^\n]*",
        "Each multiply-add of a plain loop loads one operand and touches the sum in memory. With 8 x 2 sums in "
        "registers a "
        "loaded vector of b is used eight times, so the multiply-add units are what limits, not the loads.",
        "Use it for products whose sizes exceed the tile; strips at the edges need smaller tiles.",
        ("register_tile = 8x2",),
        families=("matmul",),
    ),
    Technique(
        "packed-panels",
        "Pack the second factor into panels",
        r"pack_panel\([^\n]*",
        r"const float \*panel = b \+ j;[^\n]*",
        "Rows of b lie a page or more apart, which costs a TLB entry each. A panel is read in order, by the "
        "prefetcher's "
        "liking, and every strip of rows uses it again.",
        "Use it with more than a dozen rows; for fewer the copy costs more than it saves.",
        ("packing = panels",),
        families=("matmul",),
        unless=r"packing=none",
    ),
    Technique(
        "blocks-of-k",
        "Walk the sum in blocks of 256",
        r"KC = 256[^\n]*|depth = std::min<int64_t>\(256[^\n]*",
        r"for \(int64_t l = 0; l < k; \+\+l\)[^\n]*",
        "A block of 256 rows of a 32 column panel is 32 KiB: it stays in the first cache while the rows of a pass "
        "over it, and "
        "partial sums stay short.",
        "Use it when k is larger than about 500.",
        ("tile_k = 256",),
        families=("matmul",),
    ),
    Technique(
        "fused-epilogue",
        "Apply bias and activation where the product is stored",
        r"[^\n]*finish\(j[^\n]*",
        r"[^\n]*finish\(y\[[^\n]*",
        "A separate pass reads and writes the whole result again; fused, the values are still in cache or registers.",
        "Use it whenever something pointwise follows a product, after the last block of the sum.",
        ("epilogue = fused",),
        families=("matmul",),
    ),
    Technique(
        "streaming-stores",
        "Write large results past the caches",
        r"_mm\w*_stream_ps[^\n]*|nontemporal[^\n]*",
        r"store\(y[^\n]*|y\[j\] = [^\n]*",
        "An ordinary store first fetches the line that it overwrites. A streaming store saves that third of the "
        "traffic.",
        "Use it for results larger than the last cache that nothing reads soon; smaller ones are better kept in cache.",
        ("stores = streaming",),
        families=("elementwise",),
    ),
    Technique(
        "masked-tail",
        "Handle the last elements with part loads and part stores",
        r"[^\n]*(?:mask_loadu|load_part|load_masked)\([^\n]*",
        r"for \(; \w+ < \w+; \+\+\w+\)[^\n]*",
        "A row that is no multiple of the vector leaves up to 15 elements. One masked vector costs as much as a "
        "full one; "
        "a scalar rest loop costs 15 library calls where exp is involved.",
        "Use it where rows are short or the work of an element is large.",
        ("tail = masked",),
        stages=_BOTH,
        families=("elementwise", "reduction"),
    ),
    Technique(
        "nan-wins",
        "Let not-a-number win a maximum",
        r"[^\n]*(?:v|x|t\w*) != (?:v|x|t\w*)\b[^\n]*",
        r"[^\n]*x > \w+[^\n]*",
        "A comparison with not-a-number is false, so a plain `>` passes over it, while the definition counts it as "
        "largest.",
        "In argmax, argmin, max and min, whenever the reference propagates it.",
        ("nan = propagate",),
        stages=("correctness",),
        families=_ROWS,
    ),
    Technique(
        "promise-no-overlap",
        "Promise that outputs do not overlap inputs",
        r"[^\n]*__restrict[^\n]*",
        r"void \w+\(const float \*x0[^\n]*",
        "Without the promise the compiler must reload inputs after each store, or check for overlap before a "
        "vector loop.",
        "Use it in functions whose pointers never overlap, as the entry point guarantees.",
        ("restrict = on",),
        families=("elementwise", "reduction", "matmul", "attention"),
    ),
)
