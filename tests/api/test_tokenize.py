"""Tokens without a run: what a tokenizer cannot take is refused in words, and a long text keeps nobody else waiting."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from models.errors import Cancelled
from models.protocol import ShouldStop
from models.tokens import CharacterUnknown, Token
from tests.api.conftest import MODEL, PAIRS, SEQ2SEQ, TEXT, Start, small_model, until
from tests.fakes import FakeModel, fake_tokens


class Dropping(FakeModel):
    """Its tokenizer drops what is not a letter, and knows no snowman."""

    def tokenize(self, text: str, **options: Any) -> list[Token]:
        """See the class."""
        if "\N{SNOWMAN}" in text:
            raise CharacterUnknown(text.index("\N{SNOWMAN}"), "\N{SNOWMAN}")
        return [token for token in fake_tokens(text) if token.special or token.text.strip().isalnum()]


class Slow(FakeModel):
    """It cuts a long text for a minute, unless it is told to stop."""

    begun = threading.Event()
    ended = threading.Event()

    def tokenize(self, text: str, *, should_stop: ShouldStop = lambda: False, **options: Any) -> list[Token]:
        """See the class."""
        if len(text) < 1000:
            return fake_tokens(text)
        self.begun.set()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if should_stop():
                self.ended.set()
                raise Cancelled("stopped")
            time.sleep(0.01)
        return []


def refusal(client: TestClient, text: str) -> dict[str, Any]:
    """The error of a run over this text."""
    answer = client.post("/api/runs", json={"model": MODEL, "text": text})
    assert answer.status_code == 422, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_a_text_that_the_tokenizer_drops_is_refused_as_that(start: Start) -> None:
    error = refusal(start(Dropping(4, 3)), "\u200b\u2060")
    assert (error["code"], error["details"]) == ("text_dropped", {"field": "text"})
    assert "tokenizer drops all of the text" in error["message"]


def test_a_character_without_a_token_is_named_to_its_sender(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    client = start(Dropping(4, 3))
    error = refusal(client, "abc\N{SNOWMAN}")
    assert (error["code"], error["details"]) == ("character_unknown", {"position": 3, "code_point": "U+2603"})
    assert "U+2603 (SNOWMAN)" in error["message"]
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": "abc\N{SNOWMAN}"})
    assert (answer.status_code, answer.json()["error"]) == (422, error)
    assert "2603" not in caplog.text
    assert "SNOWMAN" not in caplog.text


@pytest.mark.parametrize("field", ["text", "text_pair"])
def test_a_text_of_a_pair_that_is_dropped_is_named(start: Start, field: str) -> None:
    client = start()
    given = {"text": TEXT, "text_pair": TEXT}
    client.app.state.services.models.others[PAIRS].tokenize = lambda _, **__: [  # type: ignore[attr-defined]
        token for token in _pair() if token.special or token.segment == (field == "text")
    ]
    answer = client.post("/api/runs", json={"model": PAIRS, **given})
    assert answer.status_code == 422, answer.text
    assert (answer.json()["error"]["code"], answer.json()["error"]["details"]) == ("text_dropped", {"field": field})


def _pair() -> list[Token]:
    return FakeModel(4, 6, kind="encoder").tokenize(TEXT, text_pair=TEXT)


def test_a_target_that_is_dropped_is_named(start: Start) -> None:
    client = start()
    client.app.state.services.models.others[SEQ2SEQ].tokenize_target = lambda _: fake_tokens("")  # type: ignore[attr-defined]
    answer = client.post("/api/runs", json={"model": SEQ2SEQ, "text": TEXT, "target_text": "\u200b"})
    assert answer.json()["error"]["details"] == {"field": "target_text"}


def test_the_answer_in_parts_is_the_answer(client: TestClient) -> None:
    text = "word " * 2500  # several parts, the last of them short
    answer = client.post("/api/tokenize", json={"model": MODEL, "text": text})
    found = answer.json()
    tokens = small_model().tokenize(text)
    assert found["tokens"] == [vars(token) for token in tokens]
    assert (found["model"], found["count"], found["over_limit"]) == (MODEL, len(tokens), len(tokens) > found["limit"])
    assert list(found) == ["model", "count", "limit", "over_limit", "tokens"]


def test_nobody_waits_for_another_clients_long_text(serve: Callable[..., str]) -> None:
    Slow.begun.clear()
    Slow.ended.clear()
    address = serve(Slow(4, 3))
    body = json.dumps({"model": MODEL, "text": "\N{REGIONAL INDICATOR SYMBOL LETTER D}" * 2000}).encode()
    host = urlsplit(address).netloc
    head = f"POST /api/tokenize HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(tuple(host.split(":"))) as connection:  # type: ignore[arg-type]
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert Slow.begun.wait(10)
        # well under the minute that the long text takes; a busy machine has seconds of its own
        answer = httpx.post(
            f"{address}/api/tokenize", json={"model": MODEL, "text": "four words of another"}, timeout=10
        )
        assert answer.json()["count"] == 5
        assert httpx.get(f"{address}/healthz", timeout=10).status_code == 200
        assert not Slow.ended.is_set()
    until(Slow.ended.is_set)  # its client has gone
