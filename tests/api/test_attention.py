"""The one-call form gives what the windows give."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from tests.api.conftest import MODEL, TEXT


def ask(client: TestClient, **options: Any) -> dict[str, Any]:
    """The one-call form of TEXT."""
    answer = client.post("/api/attention", json={"model": MODEL, "text": TEXT, **options})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_everything_at_once(client: TestClient, run: dict[str, Any]) -> None:
    answer = ask(client)
    assert answer["run"] == run["id"]
    assert (answer["layers"], answer["heads"]) == ([0, 1, 2, 3], [0, 1, 2])
    assert [len(answer["weights"]), len(answer["weights"][0]), len(answer["weights"][0][0])] == [4, 3, 6]
    window = client.get(run["links"]["weights"], params={"layer": 3, "head": 1}).json()
    assert answer["weights"][3][1] == window["weights"]
    assert len(answer["tokens"]) == 6


def test_named_layers_and_heads_in_the_order_asked(client: TestClient, run: dict[str, Any]) -> None:
    answer = ask(client, layers=[3, 1], heads=[2])
    for place, layer in enumerate((3, 1)):
        window = client.get(run["links"]["weights"], params={"layer": layer, "head": 2}).json()
        assert answer["weights"][place] == [window["weights"]]


def test_rounding(client: TestClient, run: dict[str, Any]) -> None:
    exact, rounded = ask(client)["weights"][0][0], ask(client, decimals=2)["weights"][0][0]
    assert rounded == [[None if cell is None else round(cell, 2) for cell in row] for row in exact]
