"""The figures of a capture's heads in words: made once, also where many ask at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from models import head_scores
from models.token_facts import facts_of
from tests.fakes import FakeModel


def test_words_are_made_once_for_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel(2, 3)
    tokens = model.tokenize("the cat saw the cat and the dog saw the cat")
    ids = [token.id for token in tokens]
    capture = model.run(ids, facts=facts_of(tokens), on_layer=lambda *_: None, should_stop=lambda: False).capture
    together, layers, made = threading.Barrier(4), head_scores.head_scores, []

    def slow(figures: Any) -> Any:  # noqa: ANN401  as the real one
        made.append(1)
        time.sleep(0.05)
        return layers(figures)

    def ask(_: int) -> list[dict[str, Any]]:
        together.wait(5)
        return capture.head_scores("decoder.self")

    monkeypatch.setattr(head_scores, "head_scores", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(made) == 2  # once for each layer
    assert [(head["site"], head["layer"], head["head"]) for head in found[0]] == [
        ("decoder.self", layer, head) for layer in range(2) for head in range(3)
    ]
    assert all(one == found[0] for one in found)
    found[0].clear()  # the list is the caller's own
    assert len(capture.head_scores("decoder.self")) == 6
