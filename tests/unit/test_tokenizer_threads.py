"""One tokenizer is asked by one thread at a time: the library does not promise more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from models.packaged import MINILM, find_weights
from models.tokens import tokens_from_text


class Crowd:
    """How many threads are inside at once, at most."""

    def __init__(self) -> None:
        self.most, self._inside, self._lock = 0, 0, threading.Lock()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count one thread while it is inside; wait a moment for another."""
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        threading.Event().wait(0.05)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1


def test_one_tokenizer_is_not_used_by_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = find_weights(MINILM)
    assert folder is not None
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    crowd, encode = Crowd(), PreTrainedTokenizerFast.__call__

    def counted(self: PreTrainedTokenizerFast, *texts: Any, **options: Any) -> Any:  # noqa: ANN401  as theirs
        with crowd.entered():
            return encode(self, *texts, **options)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda text: tokens_from_text(tokenizer, text, add_special_tokens=False),
                ["the cat", "a dog", "one bird", "two"],
            )
        )
    assert [tokens[0].text for tokens in found] == ["the", "a", "one", "two"]
    assert crowd.most == 1
