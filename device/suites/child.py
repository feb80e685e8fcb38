"""A confined process that runs one module of a suite: the reference's, or a candidate's. It imports nothing of ours.

It is started as a program by `device.sandbox.start_program`; messages come on standard input and go out on what was
standard output (`device.suites.process` has the other end). A message is a length (8 bytes, little-endian), a JSON
object of that length, and the bytes of its tensors. Before any foreign text is run the process gives up starting
others, the network, writing files, and reading any but Python's own and the machine's libraries.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import os
import struct
import sys
import types
from collections.abc import Sequence
from typing import Any, BinaryIO

_X86_64 = {
    "clone": 56, "clone3": 435, "openat": 257, "machine": 0xC000003E,
    "refused": (57, 58, 59, 322, 41, 42, 49, 53, 62, 200, 234, 101, 310, 311, 82, 83, 84, 85, 86, 87, 88, 90, 92, 263,
                264, 265, 266, 316, 319, 321, 425, 165, 272, 308, 437, 29, 68, 64, 240, 76, 133, 259, 258),
    "open": 2,
}  # fmt: skip
_AARCH64 = {
    "clone": 220, "clone3": 435, "openat": 56, "machine": 0xC00000B7,
    "refused": (221, 281, 198, 199, 203, 200, 129, 130, 131, 117, 270, 271, 38, 276, 34, 35, 36, 37, 52, 53, 54, 55,
                279, 280, 425, 40, 97, 268, 437, 194, 186, 190, 180, 45, 33),
    "open": -1,
}  # fmt: skip
_THREAD, _WRITING = 0x00010000, 0o3 | 0o100 | 0o1000
_ALLOW, _EPERM, _ENOSYS, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def filter_calls() -> None:
    """Let the kernel answer EPERM to starting processes, sockets, signals to others, and files opened for writing."""
    table: dict[str, Any] = _AARCH64 if os.uname().machine == "aarch64" else _X86_64
    code: list[tuple[int, int, int, int]] = [(0x20, 0, 0, 4), (0x15, 1, 0, table["machine"]), (0x06, 0, 0, _KILL)]
    code += [(0x20, 0, 0, 0), (0x35, 0, 1, 0x40000000), (0x06, 0, 0, _KILL)]  # the x32 calls
    for number in table["refused"]:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, _EPERM)]
    code += [(0x15, 0, 1, table["clone3"]), (0x06, 0, 0, _ENOSYS)]
    for number, argument, mask, wanted in (
        (table["clone"], 0, _THREAD, _THREAD), (table["openat"], 2, _WRITING, 0), (table["open"], 1, _WRITING, 0),
    ):  # fmt: skip
        if number < 0:
            continue
        code += [(0x15, 0, 5, number), (0x20, 0, 0, 16 + 8 * argument), (0x54, 0, 0, mask), (0x15, 0, 1, wanted)]
        code += [(0x06, 0, 0, _ALLOW), (0x06, 0, 0, _EPERM)]
    code.append((0x06, 0, 0, _ALLOW))
    text = b"".join(struct.pack("<HBBI", *line) for line in code)
    program = _Program(len(code), text)
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def read_only_these(folders: Sequence[str]) -> bool:
    """Ask Landlock for nothing but reading below those folders; False where the machine has none."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    everything, reading = ctypes.c_uint64((1 << 13) - 1), (1 << 2) | (1 << 3)
    rules = call(444, ctypes.byref(everything), 8, 0)
    if rules < 0:
        return False
    for folder in folders:
        with contextlib.suppress(OSError):
            fd = os.open(folder, os.O_PATH)
            rule = struct.pack("<Qi", reading, fd)
            call(445, rules, 1, rule, 0)
            os.close(fd)
    done: bool = call(446, rules, 0) == 0
    os.close(rules)
    return done


class Refused(Exception):  # noqa: N818  (an answer to the judge, in words)
    """What was asked cannot be done with this module."""


class StandIn(types.ModuleType):
    """Takes the place of a module that only the suite's own machine has; importing from it works, using it does not."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def absent(*_: Any, **__: Any) -> Any:
            raise Refused(f"{self.__name__}.{name} is not there outside of the suite's own machine")

        return absent


class Host:
    """One module at work."""

    def __init__(self, replies: BinaryIO) -> None:
        import torch  # noqa: PLC0415  (a second, and only in this process)

        self.torch: Any = torch
        self.replies = replies
        self.module = types.ModuleType("task")
        self.model: Any = None
        self.wide: Any = None
        self.init: list[Any] = []
        self.slots: dict[int, list[Any]] = {}
        self.most = 1 << 30
        self.results: list[Any] = []

    # Tensors, and what else a module may be made of, as JSON and bytes.

    def pack(self, value: Any, parts: list[bytes]) -> Any:
        """Put a value into JSON; the bytes of tensors go to `parts`."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if type(value) not in {torch.Tensor, torch.nn.Parameter} or value.device.type != "cpu":
                raise Refused(f"a {type(value).__name__} on {value.device} is no plain tensor")
            total = value.numel() * value.element_size() + sum(map(len, parts))
            if total > self.most:
                raise Refused(f"tensors of {total / 2**30:.2f} GiB at once; {self.most / 2**30:g} GiB is the most here")
            if value.layout != torch.strided:
                raise Refused(f"a tensor of layout {value.layout} is not dense")
            dense = value.detach().contiguous().reshape(-1)
            raw = bytes(dense.view(torch.uint8).numpy()) if dense.numel() else b""
            parts.append(raw)
            return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), len(raw)]}
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"plain": value}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.pack(part, parts) for part in value]}
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return {"dict": {name: self.pack(part, parts) for name, part in value.items()}}
        raise Refused(f"a {type(value).__name__} cannot be handed over")

    def unpack(self, word: Any, parts: list[bytes]) -> Any:
        """Undo `pack`."""
        ((kind, value),) = word.items()
        if kind == "tensor":
            dtype, shape, _ = value
            raw = bytearray(parts.pop(0))
            kind = getattr(self.torch, dtype)
            return self.torch.frombuffer(raw, dtype=kind).reshape(shape) if raw else self.torch.empty(shape, dtype=kind)
        if kind == "dict":
            return {name: self.unpack(part, parts) for name, part in value.items()}
        if kind == "plain":
            return value
        made = [self.unpack(part, parts) for part in value]
        return tuple(made) if kind == "tuple" else made

    # What the judge asks for.

    def open(self, order: dict[str, Any], parts: list[bytes]) -> Any:
        """Run the module's text, and make its model from its own or the given arguments under the seed."""
        self.model = self.wide = None
        self.most = int(order["most"])
        self.slots, self.results = {}, []
        self.module = types.ModuleType("task")
        sys.modules["task"] = self.module
        for name in order.get("stand_ins", ()):
            sys.modules[name] = StandIn(name)
        for name, text in order.get("beside", {}).items():
            other = types.ModuleType(name)
            sys.modules[name] = other
            exec(compile(text, f"{name}.py", "exec"), other.__dict__)  # noqa: S102  (what this process is for)
        exec(compile(order["text"], order["file"], "exec"), self.module.__dict__)  # noqa: S102  (the same)
        for name in order["needs"]:
            if not callable(self._find(name)):
                raise Refused(f"there is no {name}")
        self.torch.manual_seed(order["seed"])
        rows = order.get("row")
        given = order["init"]
        if given is None:
            make = self._find("get_init_inputs")
            self.init = list(make() if rows is None else make(rows, "cpu"))
        else:
            self.init = list(self.unpack(given, parts))
        self.torch.manual_seed(order["seed"])
        self.model = self._find(order["model"])(*self.init)
        if not callable(self.model):
            raise Refused(f"{order['model']} makes no module that can be called")
        return list(self.init)

    def _find(self, name: str) -> Any:
        for module in (self.module, sys.modules.get("prepare_inputs")):
            if module is not None and hasattr(module, name):
                return getattr(module, name)
        return None

    def state(self, _order: dict[str, Any], _parts: list[bytes]) -> Any:
        """Return the weights."""
        return dict(self.model.state_dict()) if hasattr(self.model, "state_dict") else {}

    def load(self, order: dict[str, Any], parts: list[bytes]) -> Any:
        """Take weights; say whether names and shapes were the same."""
        given = self.unpack(order["state"], parts)
        own = self.model.state_dict() if hasattr(self.model, "state_dict") else {}
        same = {n: tuple(t.shape) for n, t in own.items()} == {n: tuple(t.shape) for n, t in given.items()}
        if same and given:
            self.model.load_state_dict(given)
        return bool(same)

    def inputs(self, order: dict[str, Any], _parts: list[bytes]) -> Any:
        """Return what `get_inputs` gives under the seed."""
        self.torch.manual_seed(order["seed"])
        make, rows = self._find("get_inputs"), order.get("row")
        return list(make() if rows is None else make(rows, "cpu"))

    def slot(self, order: dict[str, Any], parts: list[bytes]) -> Any:
        """Keep inputs for a call."""
        self.slots[0] = list(self.unpack(order["inputs"], parts))

    def call(self, order: dict[str, Any], _parts: list[bytes]) -> Any:
        """Run the model on what the slot holds; `wide`: in float64."""
        torch = self.torch
        model, values = self.model, self.slots[0]
        self.results = []
        torch.manual_seed(order["seed"])
        with torch.no_grad():
            if not order["wide"]:
                result = model(*values)
            else:
                if self.wide is None:
                    self.wide = copy.deepcopy(model)
                    self.wide = self.wide.double() if hasattr(self.wide, "double") else self.wide
                torch.set_default_dtype(torch.float64)
                try:
                    result = self.wide(*[self._widened(value) for value in values])
                finally:
                    torch.set_default_dtype(torch.float32)
        self.results = list(result) if isinstance(result, (list, tuple)) else [result]

    def _widened(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._widened(part) for part in value)
        floating = isinstance(value, self.torch.Tensor) and value.is_floating_point()
        return value.double() if floating else value

    def fetch(self, _order: dict[str, Any], _parts: list[bytes]) -> Any:
        """Return what the last call gave."""
        for value in self.results:
            if not isinstance(value, self.torch.Tensor):
                raise Refused(f"forward gives a {type(value).__name__}, not a tensor")
        return list(self.results)

    def kept(self, _order: dict[str, Any], _parts: list[bytes]) -> Any:
        """Return the inputs as the last call left them."""
        return list(self.slots[0])

    def answer(self, order: dict[str, Any], parts: list[bytes]) -> None:
        """Do what an order says and send its answer."""
        try:
            out: list[bytes] = []
            value = getattr(self, order["do"])(order, parts)
            head: dict[str, Any] = {"ok": self.pack(value, out)}
        except Refused as refused:
            head, out = {"refused": str(refused)}, []
        except Exception as error:  # noqa: BLE001  (whatever a foreign module raises is an answer)
            head, out = {"error": f"{type(error).__name__}: {error}"[:2000]}, []
        send(self.replies, head, out)


def send(stream: BinaryIO, head: dict[str, Any], parts: Sequence[bytes]) -> None:
    """Write one message."""
    text = json.dumps({**head, "parts": [len(part) for part in parts]}).encode()
    stream.write(struct.pack("<Q", len(text)) + text)
    stream.writelines(parts)
    stream.flush()


def main() -> None:
    """Serve until the judge closes the pipe."""
    orders, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.dup2(empty, 1)
    host = Host(replies)
    host.torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    # torch reads more of itself at first use; what it may read stays, all else goes.
    landed = read_only_these([sys.prefix, sys.base_prefix, "/usr/lib", "/lib", "/lib64", "/proc/self", "/proc/cpuinfo",
                              "/sys/devices/system/cpu", os.devnull])  # fmt: skip
    filter_calls()
    send(replies, {"ok": {"plain": landed}}, [])
    while size := orders.read(8):
        order = json.loads(orders.read(struct.unpack("<Q", size)[0]))
        host.answer(order, [orders.read(count) for count in order["parts"]])


if __name__ == "__main__":
    main()
