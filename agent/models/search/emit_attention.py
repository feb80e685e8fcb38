"""Composes attention: softmax(f(q k^T)) v for any pointwise f of a score, row by row of the queries."""

from __future__ import annotations

from collections.abc import Mapping

from agent.models.search.attention_vector import vector_queries
from agent.models.search.emit_matmul import BATCHES, DENSE_COPY
from agent.models.search.errors import NoRecipe
from agent.models.search.expression import Printer
from agent.models.search.ir import Input, Length, MatMul, Node, Program, Recipe, per_row, rebuild, walk
from agent.models.search.kernel import Frame
from agent.models.search.threads import write_threads
from agent.models.search.writer import Writer

KEY_BLOCK = 128


class Attention:
    """The parts: the three inputs, and the function that turns q·k into a score."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        match frame.root:
            case MatMul(Recipe("softmax", (score,)), Input() as values):
                pass
            case _:
                raise NoRecipe(frame.program.name, "two matrix products that are not softmax(q k^T) v")
        products = [node for node in walk(score) if isinstance(node, MatMul)]
        match products:
            case [MatMul(Input() as queries, Input() as keys)]:
                pass
            case _:
                raise NoRecipe(frame.program.name, "scores that are not a product of two inputs")
        self.queries, self.keys, self.values = (frame.slot(at) for at in (queries, keys, values))
        self.product: Node = products[0]
        self.score: Node = score
        used = {node for node in walk(rebuild(score, self._without_product)) if isinstance(node, Input)}
        if used:
            raise NoRecipe(frame.program.name, "a mask or bias that is added to the scores")

    def _without_product(self, node: Node) -> Node:
        if node == self.product:
            return Length(self.frame.inputs[self.queries])
        return node

    @property
    def blocked(self) -> bool:
        """Whether sums over the keys are formed in blocks."""
        return self.frame.choices.get("accumulator") == "blocked"

    @property
    def unit(self) -> bool:
        """Whether columns are known to lie next to each other."""
        return self.frame.choices["layout"] != "general"

    def score_function(self) -> None:
        """`score`: what is done to q·k before the softmax; `width` is the length of a query."""
        frame = self.frame
        kinds = ("float", "Vec") if frame.vector else ("float",)
        for kind in kinds:
            with frame.body.block(f"inline {kind} score({kind} dot, float width{frame.attribute_parameters()})"):
                named: dict[Node, str] = {self.product: "dot"}
                printer = Printer(
                    vector=kind == "Vec",
                    load=lambda _: "dot",
                    named=named,
                    length=lambda _: "width",
                    choices=frame.choices,
                    emit=frame.body.line,
                    used=frame.used,
                )
                value = printer.value(self.score)
                frame.body.line("(void)width;") if "width" not in value else None
                frame.body.line(f"return {f'wide({value})' if kind == 'Vec' and per_row(self.score) else value};")
            frame.body.line()

    def exp(self, text: str, *, vector: bool = False) -> str:
        """exp, as chosen."""
        if self.frame.choices.get("exp") == "polynomial":
            self.frame.used.add("exp_poly")
            return f"exp_poly({text})"
        if vector:
            self.frame.used.add("lanes:exp:1")
            return f"lanes_exp({text})"
        return f"std::exp({text})"


def emit(program: Program, choices: Mapping[str, str]) -> str:
    """The kernel's source. The tree must be softmax of one product's scores, times the values."""
    frame = Frame(program, program.root, choices)
    attention = Attention(frame)
    frame.body.text(BATCHES.split("// The step along")[0])
    if choices["layout"] == "fast_path":
        frame.body.text(DENSE_COPY)
    frame.body.line()
    attention.score_function()
    if frame.vector:
        tasks = vector_queries(attention)
    else:
        _some_queries(attention)
        tasks = _tasks(attention)
    online = choices["softmax_shift"] == "online"
    note = "Scores come in blocks of keys; sum and output are rescaled when the maximum grows." if online else (
        "Scores of one query for all keys, their softmax, then the weighted sum of the values."
    )  # fmt: skip
    return frame.source(_entry(attention, tasks), note)


def _entry(attention: Attention, tasks: Writer) -> Writer:
    frame, entry = attention.frame, Writer()
    entry.lines(frame.view_lines())
    q, k, v = attention.queries, attention.keys, attention.values
    entry.line(f"if (v{q}.ndim < 2 || v{k}.ndim < 2 || v{v}.ndim < 2 || out.ndim < 2) return 3;")
    entry.line(f"const int64_t queries = v{q}.shape[v{q}.ndim - 2], width = v{q}.shape[v{q}.ndim - 1];")
    entry.line(f"const int64_t keys = v{v}.shape[v{v}.ndim - 2], columns = v{v}.shape[v{v}.ndim - 1];")
    entry.line("int64_t batches = 1;")
    entry.line("for (int64_t d = 0; d < out.ndim - 2; ++d) batches *= out.shape[d];")
    entry.line("const int64_t y_i = out.stride[out.ndim - 2], y_j = out.stride[out.ndim - 1];")
    fast = frame.choices["layout"] == "fast_path"
    with entry.block("for (int64_t batch = 0; batch < batches; ++batch)"):
        for name, slot in (("q", q), ("k", k), ("v", v)):
            # The keys are seen transposed: their rows are the last axis.
            row, column = (1, 2) if name == "k" else (2, 1)
            entry.line(f"const float *{name} = v{slot}.data + batch_start(v{slot}, out, batch);")
            entry.line(f"{'' if fast else 'const '}int64_t {name}_i = v{slot}.stride[v{slot}.ndim - {row}];")
            if frame.choices["layout"] != "assume_contiguous":
                entry.line(f"const int64_t {name}_j = v{slot}.stride[v{slot}.ndim - {column}];")
        if fast:
            entry.line("std::vector<float> q_copy, k_copy, v_copy;")
            entry.line("q = dense_columns(q, queries, width, q_i, q_j, q_copy);")
            entry.line("k = dense_columns(k, keys, width, k_i, k_j, k_copy);")
            entry.line("v = dense_columns(v, keys, columns, v_i, v_j, v_copy);")
        entry.line("float *y = out.data + batch_start(out, out, batch);")
        entry.text(str(tasks))
        write_threads(entry, frame, "tasks", "queries * keys * width / 16")
    return entry


def steps(attention: Attention) -> tuple[str, str]:
    """Parameters and arguments of the three inputs with their steps."""
    restrict = attention.frame.restrict
    names = ("q", "k", "v")
    second = "" if attention.unit else ", int64_t {0}_j"
    parameters = ", ".join(f"const float *{restrict}{n}, int64_t {n}_i{second.format(n)}" for n in names)
    arguments = ", ".join(f"{n}, {n}_i{'' if attention.unit else f', {n}_j'}" for n in names)
    return parameters, arguments


def _tasks(attention: Attention) -> Writer:
    tasks = Writer()
    _, arguments = steps(attention)
    tasks.line("const int64_t tasks = queries;")
    with tasks.block("const auto work = [&](int64_t begin, int64_t end)", "};"):
        tasks.line("std::vector<float> scores(keys + columns);  // and behind them room for one row of sums")
        with tasks.block("for (int64_t i = begin; i < end; ++i)"):
            shifted = arguments.replace("q, q_i", "q + i * q_i, q_i", 1)
            extra = attention.frame.attribute_arguments()
            tasks.line(f"one_query({shifted}, y + i * y_i, y_j, keys, width, columns, scores.data(){extra});")
    return tasks


def _some_queries(attention: Attention) -> None:
    body, frame = attention.frame.body, attention.frame
    parameters, _ = steps(attention)
    tail = "float *scores" + frame.attribute_parameters()
    head = (
        f"void one_query({parameters}, float *{frame.restrict}y, int64_t y_j, int64_t keys, int64_t width, "
        f"int64_t columns, {tail})"
    )
    online = frame.choices["softmax_shift"] == "online"
    with body.block(head):
        body.line("for (int64_t c = 0; c < columns; ++c) y[c * y_j] = 0.0f;")
        if online:
            body.line("float top = -INFINITY, sum = 0.0f;")
            with body.block(f"for (int64_t from = 0; from < keys; from += {KEY_BLOCK})"):
                body.line(f"const int64_t to = std::min<int64_t>(keys, from + {KEY_BLOCK});")
                _scores(attention, "from", "to")
                body.line("float raised = top;")
                body.line("for (int64_t j = from; j < to; ++j) raised = std::max(raised, scores[j]);")
                body.line("// What was gathered under the old maximum shrinks to the new one.")
                body.line("const float shrink = top == raised ? 1.0f : std::exp(top - raised);")
                body.line("top = raised;")
                body.line("sum *= shrink;")
                body.line("for (int64_t c = 0; c < columns; ++c) y[c * y_j] *= shrink;")
                _weigh_and_gather(attention, "from", "to")
        else:
            _scores(attention, "0", "keys")
            if frame.choices["softmax_shift"] == "max":
                body.line("float top = -INFINITY;")
                body.line("for (int64_t j = 0; j < keys; ++j) top = std::max(top, scores[j]);")
            body.line("float sum = 0.0f;")
            if attention.blocked:
                body.line("// Blocks of keys are summed on their own first, which keeps more digits of a long sum.")
                with body.block(f"for (int64_t from = 0; from < keys; from += {KEY_BLOCK})"):
                    body.line(f"const int64_t to = std::min<int64_t>(keys, from + {KEY_BLOCK});")
                    _weigh_and_gather(attention, "from", "to")
            else:
                _weigh_and_gather(attention, "0", "keys")
        if frame.choices.get("division") == "reciprocal":
            body.line("const float share = 1.0f / sum;")
            body.line("for (int64_t c = 0; c < columns; ++c) y[c * y_j] *= share;")
        else:
            body.line("for (int64_t c = 0; c < columns; ++c) y[c * y_j] /= sum;")


def _pragma(attention: Attention, clauses: str = "") -> None:
    if attention.frame.choices.get("simd") == "pragma":
        attention.frame.body.line(f"#pragma omp simd{clauses}")


def _scores(attention: Attention, low: str, high: str) -> None:
    body = attention.frame.body
    q, k = ("q[l]", "k[j * k_i + l]") if attention.unit else ("q[l * q_j]", "k[j * k_i + l * k_j]")
    with body.block(f"for (int64_t j = {low}; j < {high}; ++j)"):
        body.line("float dot = 0.0f;")
        _pragma(attention, " reduction(+ : dot)")
        body.line(f"for (int64_t l = 0; l < width; ++l) dot += {q} * {k};")
        body.line(f"scores[j] = score(dot, static_cast<float>(width){attention.frame.attribute_arguments()});")


def _weigh_and_gather(attention: Attention, low: str, high: str) -> None:
    """Scores to weights and their sum, then the weighted values; in blocks, both join the totals at the end."""
    body = attention.frame.body
    if not attention.blocked:
        _weights(attention, low, high, "sum")
        _gather(attention, low, high, "y", "y_j")
        return
    body.line("float part = 0.0f;")
    _weights(attention, low, high, "part")
    body.line("sum += part;")
    body.line("float *gathered = scores + keys;")
    body.line("std::fill(gathered, gathered + columns, 0.0f);")
    _gather(attention, low, high, "gathered", "")
    body.line("for (int64_t c = 0; c < columns; ++c) y[c * y_j] += gathered[c];")


def _weights(attention: Attention, low: str, high: str, total: str) -> None:
    body = attention.frame.body
    _pragma(attention, f" reduction(+ : {total})")
    with body.block(f"for (int64_t j = {low}; j < {high}; ++j)"):
        shifted = "scores[j]" if attention.frame.choices["softmax_shift"] == "none" else "scores[j] - top"
        body.line(f"scores[j] = {attention.exp(shifted)};")
        body.line(f"{total} += scores[j];")


def _gather(attention: Attention, low: str, high: str, sums: str, step: str) -> None:
    body = attention.frame.body
    value = "v[j * v_i + c]" if attention.unit else "v[j * v_i + c * v_j]"
    with body.block(f"for (int64_t j = {low}; j < {high}; ++j)"):
        body.line("const float weight = scores[j];")
        _pragma(attention)
        target = f"{sums}[c * {step}]" if step else f"{sums}[c]"
        body.line(f"for (int64_t c = 0; c < columns; ++c) {target} += weight * {value};")
