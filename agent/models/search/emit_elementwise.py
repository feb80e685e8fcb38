"""Composes element-wise kernels: any pointwise tree over inputs that broadcast to the output."""

# ruff: noqa: SIM117  (nested blocks look like the loops that they write)
from __future__ import annotations

from collections.abc import Mapping

from agent.models.search import rows
from agent.models.search.expression import Printer
from agent.models.search.ir import Input, Length, Program, walk
from agent.models.search.kernel import Frame
from agent.models.search.threads import write_threads
from agent.models.search.writer import Writer

_BLOCK = 1024

_LOOP = """
constexpr int kOperands = @OPERANDS@;  // the inputs, then the output
constexpr int64_t kBlock = @BLOCK@;   // elements that are handled at once: a few KiB an operand

// The axes that are left to walk once every pair that all operands step through as through one is joined.
struct Loop {
  int64_t ndim;
  int64_t shape[kMaxDims];
  int64_t stride[kOperands][kMaxDims];
};

Loop loop_over(const View (&operands)[kOperands]) {
  const View &out = operands[kOperands - 1];
  Loop loop{};
  for (int64_t d = 0; d < out.ndim; ++d) {
    if (out.shape[d] == 1) continue;
    int64_t stride[kOperands];
    bool joins = loop.ndim > 0;
    for (int k = 0; k < kOperands; ++k) {
      const int64_t at = d - (out.ndim - operands[k].ndim);
      // A missing axis, or one of size 1, is stretched: it does not move.
      stride[k] = at < 0 || operands[k].shape[at] == 1 ? 0 : operands[k].stride[at];
      joins = joins && loop.stride[k][loop.ndim - 1] == stride[k] * out.shape[d];
    }
    const int64_t to = joins ? loop.ndim - 1 : loop.ndim++;
    loop.shape[to] = joins ? loop.shape[to] * out.shape[d] : out.shape[d];
    for (int k = 0; k < kOperands; ++k) loop.stride[k][to] = stride[k];
  }
  if (loop.ndim == 0) {
    loop.ndim = 1;
    loop.shape[0] = 1;
  }
  return loop;
}

// `n` elements with stride 1: as they lie, or copied together.
const float *together(const float *p, int64_t stride, int64_t n, float *buffer) {
  if (stride == 1) return p;
  for (int64_t j = 0; j < n; ++j) buffer[j] = p[j * stride];
  return buffer;
}
"""

_STREAM = """
// Results that no one reads soon go past the caches: the line is not fetched first, and nothing useful is evicted.
inline void stream_out(float *to, const float *from, int64_t n) {
  int64_t j = 0;
#if defined(__AVX__)
  for (; j < n && (reinterpret_cast<uintptr_t>(to + j) & 31) != 0; ++j) to[j] = from[j];
  for (; j + 8 <= n; j += 8) _mm256_stream_ps(to + j, _mm256_loadu_ps(from + j));
  _mm_sfence();
#endif
  for (; j < n; ++j) to[j] = from[j];
}
"""


def emit(program: Program, choices: Mapping[str, str]) -> str:
    """The kernel's source. The tree must hold neither reductions nor products."""
    frame = Frame(program, rows.lower(program.root, choices), choices)
    general = choices["layout"] == "general"
    _compute(frame, vector=False, scalar_too=not frame.vector or choices.get("tail") == "scalar")
    if general:
        return frame.source(_general(frame), "Each element is found by its index, so any strides and broadcasts do.")
    if frame.vector:
        _compute(frame, vector=True, scalar_too=False)
    _block(frame)
    text = _LOOP.replace("@OPERANDS@", str(len(frame.inputs) + 1)).replace("@BLOCK@", str(_BLOCK))
    functions, frame.body = str(frame.body), Writer()
    frame.body.text(text)
    if choices.get("stores") == "streaming":
        frame.body.text(_STREAM)
    frame.body.line()
    frame.body.text(functions)
    note = "Inputs are dense." if frame.dense else "Strided or stretched inputs are copied together block by block."
    source = frame.source(_blocked(frame), f"Axes are joined, and the innermost is handled in blocks. {note}")
    if choices.get("stores") == "streaming":
        source = source.replace(
            "\nnamespace {", "#if defined(__AVX__)\n#include <immintrin.h>\n#endif\n\nnamespace {", 1
        )
    return source


def _parameters(frame: Frame, kind: str) -> str:
    inputs = ", ".join(f"{kind} x{slot}" for slot in range(len(frame.inputs)))
    return inputs + frame.attribute_parameters() + ("" if not _lengths(frame) else _length_parameters(frame))


def _lengths(frame: Frame) -> tuple[Length, ...]:
    return tuple(node for node in walk(frame.root) if isinstance(node, Length))


def _length_parameters(frame: Frame) -> str:
    return "".join(f", float n{at}" for at in range(len(_lengths(frame))))


def _extra_arguments(frame: Frame) -> str:
    return frame.attribute_arguments() + "".join(f", n{at}" for at in range(len(_lengths(frame))))


def _compute(frame: Frame, *, vector: bool, scalar_too: bool) -> None:
    """The tree as a function of one element (or one vector) of each input."""
    if not vector and not scalar_too:
        return
    kind = "Vec" if vector else "float"
    lengths = _lengths(frame)
    body = frame.body
    with body.block(f"inline {kind} compute({_parameters(frame, kind)})"):
        printer = Printer(
            vector=vector,
            load=lambda at: f"x{frame.slot(at)}",
            named={at: f"x{slot}" for slot, at in enumerate(frame.inputs)},
            length=lambda at: f"n{lengths.index(at)}",
            choices=frame.choices,
            emit=body.line,
            used=frame.used,
        )
        body.line(f"return {printer.value(frame.root)};")
    body.line()


def _call(frame: Frame, element: str) -> str:
    arguments = ", ".join(element.replace("@", f"x{slot}") for slot in range(len(frame.inputs)))
    return f"compute({arguments}{_extra_arguments(frame)})"


def _block(frame: Frame) -> None:
    body, choices = frame.body, frame.choices
    pointers = "".join(f"const float *{frame.restrict}x{slot}, " for slot in range(len(frame.inputs)))
    head = f"void block({pointers}float *{frame.restrict}y, int64_t n"
    with body.block(f"{head}{frame.attribute_parameters()}{_length_parameters(frame)})"):
        unroll = int(choices.get("unroll", "1"))
        if choices.get("simd", "none") == "pragma":
            body.line("#pragma omp simd")
            body.line(f"for (int64_t j = 0; j < n; ++j) y[j] = {_call(frame, '@[j]')};")
        elif frame.vector:
            _vector_loops(frame, unroll)
        elif unroll == 1:
            body.line(f"for (int64_t j = 0; j < n; ++j) y[j] = {_call(frame, '@[j]')};")
        else:
            body.line("int64_t j = 0;")
            with body.block(f"for (; j + {unroll} <= n; j += {unroll})"):
                body.lines(f"y[j + {u}] = {_call(frame, f'@[j + {u}]')};" for u in range(unroll))
            if choices["tail"] != "ignored":
                body.line(f"for (; j < n; ++j) y[j] = {_call(frame, '@[j]')};")


def _vector_loops(frame: Frame, unroll: int) -> None:
    body, tail = frame.body, frame.choices["tail"]
    body.line("int64_t j = 0;")
    if unroll > 1:
        with body.block(f"for (; j + {unroll} * kLanes <= n; j += {unroll} * kLanes)"):
            for u in range(unroll):
                at = f"j + {u} * kLanes" if u else "j"
                body.line(f"const Vec r{u} = {_call(frame, f'load(@ + {at})')};")
            for u in range(unroll):
                body.line(f"store(y + j{f' + {u} * kLanes' if u else ''}, r{u});")
    body.line(f"for (; j + kLanes <= n; j += kLanes) store(y + j, {_call(frame, 'load(@ + j)')});")
    if tail == "scalar":
        body.line(f"for (; j < n; ++j) y[j] = {_call(frame, '@[j]')};")
    elif tail in {"padded", "masked"}:
        frame.used |= {f"load_{tail}", "store_part"}
        body.line("const int64_t rest = n - j;")
        body.line(f"if (rest > 0) store_part(y + j, {_call(frame, f'load_{tail}(@ + j, rest, 1.0f)')}, rest);")


def _view_array(frame: Frame) -> str:
    return ", ".join([f"v{slot}" for slot in range(len(frame.inputs))] + ["out"])


def _length_lines(frame: Frame) -> list[str]:
    return [
        f"const float n{at} = static_cast<float>(v{frame.slot(_as_input(frame, node))}.shape["
        f"v{frame.slot(_as_input(frame, node))}.ndim - 1]);"
        for at, node in enumerate(_lengths(frame))
    ]


def _as_input(frame: Frame, node: Length) -> Input:
    return next((at for at in frame.inputs if at == node.of), frame.inputs[0])


def _blocked(frame: Frame) -> Writer:
    entry = Writer()
    entry.lines(frame.view_lines())
    entry.lines(_length_lines(frame))
    entry.line(f"const View operands[kOperands] = {{{_view_array(frame)}}};")
    entry.line("const Loop loop = loop_over(operands);")
    entry.line("const int64_t last = loop.ndim - 1, length = loop.shape[last];")
    entry.line("const int64_t blocks = (length + kBlock - 1) / kBlock;")
    entry.line("int64_t rows = 1;")
    entry.line("for (int64_t d = 0; d < last; ++d) rows *= loop.shape[d];")
    streaming = frame.choices.get("stores") == "streaming"
    with entry.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        buffers = ", ".join([f"b{slot}[kBlock]" for slot in range(len(frame.inputs))] + ["result[kBlock]"])
        entry.line(f"float {buffers};")
        with entry.block("for (int64_t task = begin; task < end; ++task)"):
            entry.line("const int64_t from = task % blocks * kBlock, n = std::min(kBlock, length - from);")
            entry.line("int64_t offset[kOperands];")
            entry.line("for (int k = 0; k < kOperands; ++k) offset[k] = from * loop.stride[k][last];")
            with entry.block("for (int64_t d = last - 1, row = task / blocks; d >= 0; row /= loop.shape[d--])"):
                entry.line("const int64_t at = row % loop.shape[d];")
                entry.line("for (int k = 0; k < kOperands; ++k) offset[k] += at * loop.stride[k][d];")
            for slot in range(len(frame.inputs)):
                place = f"v{slot}.data + offset[{slot}], loop.stride[{slot}][last]"
                entry.line(f"const float *x{slot} = together({place}, n, b{slot});")
            entry.line("float *y = out.data + offset[kOperands - 1];")
            entry.line("const int64_t step = loop.stride[kOperands - 1][last];")
            xs = ", ".join(f"x{slot}" for slot in range(len(frame.inputs)))
            target = "result" if streaming else "(step == 1 ? y : result)"
            entry.line(f"block({xs}, {target}, n{_extra_arguments(frame)});")
            if streaming:
                entry.line("if (step == 1) stream_out(y, result, n);")
            entry.line("for (int64_t j = 0; step != 1 && j < n; ++j) y[j * step] = result[j];")
    entry.line("const int64_t tasks = rows * blocks;")
    write_threads(entry, frame, "tasks", "rows * length")
    return entry


def _general(frame: Frame) -> Writer:
    entry = Writer()
    entry.lines(frame.view_lines())
    entry.lines(_length_lines(frame))
    entry.line("int64_t total = 1;")
    entry.line("for (int64_t d = 0; d < out.ndim; ++d) total *= out.shape[d];")
    entry.line("// Where element `index` of the output lies in a view that is stretched to the output's shape.")
    with entry.block("const auto place = [&](const View &v, int64_t index)", "};"):
        entry.line("int64_t offset = 0;")
        with entry.block("for (int64_t d = out.ndim - 1; d >= 0; index /= out.shape[d--])"):
            entry.line("const int64_t at = d - (out.ndim - v.ndim);")
            entry.line("if (at >= 0 && v.shape[at] != 1) offset += index % out.shape[d] * v.stride[at];")
        entry.line("return offset;")
    with entry.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        with entry.block("for (int64_t i = begin; i < end; ++i)"):
            arguments = ", ".join(f"v{slot}.data[place(v{slot}, i)]" for slot in range(len(frame.inputs)))
            entry.line(f"out.data[place(out, i)] = compute({arguments}{_extra_arguments(frame)});")
    write_threads(entry, frame, "total", "total")
    return entry
