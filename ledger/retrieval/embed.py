"""What turns texts into vectors: any OpenAI-compatible endpoint, or a model that a package ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import numpy as np
from numpy.typing import NDArray

from ledger.errors import EmbeddingError

if TYPE_CHECKING:
    from ledger.settings import Settings

BATCH = 64


class Embedder(Protocol):
    """A named model. Its name and version go with every vector, so that vectors of two models never mix."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def version(self) -> str:
        """Its version: a release, or what the endpoint calls it."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, one row a text. Raises EmbeddingError."""
        ...


class EndpointEmbedder:
    """`POST {base}/embeddings` as OpenAI defines it; vLLM, llama.cpp, Ollama and others answer it, too."""

    def __init__(self, base_url: str, model: str, key: str | None = None, *, timeout: float = 30.0) -> None:
        self._model = model
        self._base = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(timeout=timeout, headers=headers)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    @property
    def version(self) -> str:
        """Its version."""
        return "endpoint"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, one row a text."""
        rows: list[Any] = []
        for start in range(0, len(texts), BATCH):
            rows.extend(self._ask(list(texts[start : start + BATCH])))
        return np.asarray(rows, dtype=np.float32)

    def _ask(self, texts: list[str]) -> list[Any]:
        where = f"{self._base}/embeddings"
        try:
            response = self._http.post(where, json={"model": self._model, "input": texts, "encoding_format": "float"})
            response.raise_for_status()
            data = sorted(response.json()["data"], key=lambda item: int(item["index"]))
            rows = [item["embedding"] for item in data]
        except httpx.HTTPStatusError as error:
            raise EmbeddingError(
                where, f"it answered {error.response.status_code}: {error.response.text[:200]}"
            ) from error
        except httpx.HTTPError as error:
            raise EmbeddingError(where, str(error) or type(error).__name__) from error
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(where, f"its answer is not a list of embeddings ({error})") from error
        lengths = {len(row) if isinstance(row, list) else -1 for row in rows}
        if len(rows) != len(texts) or len(lengths) != 1 or lengths <= {0, -1}:
            raise EmbeddingError(
                where, f"it answered {len(rows)} vectors of lengths {sorted(lengths)} for {len(texts)} texts"
            )
        return rows


def from_settings(settings: Settings) -> Embedder | None:
    """The embedder that the settings name; None: retrieval is lexical."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "local":
        from ledger.retrieval.minilm import MiniLm  # noqa: PLC0415 - 90 MB of weights, only where asked for

        return MiniLm()
    if not settings.embeddings_model:
        raise EmbeddingError(settings.embeddings, "no model is named; set SAGEBOOK_EMBEDDINGS_MODEL")
    return EndpointEmbedder(settings.embeddings, settings.embeddings_model, settings.embeddings_key)
