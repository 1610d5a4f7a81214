"""Answers that come from rules as well as from a run: another server may have others."""

from __future__ import annotations

import pytest

from app.routes import answers
from tests.api.conftest import Start, make_run, settle


def test_what_an_earlier_server_answered_is_not_said_to_be_unchanged(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start()
    run = make_run(first)
    settle(first, run)
    addresses = [f"/api/runs/{run['id']}/{call}" for call in ("heads", "layers", "weights?layer=0&head=0")]
    pair = f"a={run['id']}&b={run['id']}&layer_a=0&head_a=0&layer_b=1&head_b=1"
    addresses.append(f"/api/compare?{pair}")
    tags = [first.get(address).headers["etag"] for address in addresses]
    for address, tag in zip(addresses, tags, strict=True):
        assert first.get(address, headers={"If-None-Match": tag}).status_code == 304
    monkeypatch.setattr(answers, "RULES", "of a later process")
    second = start()
    for address, tag in zip(addresses, tags, strict=True):
        assert second.get(address, headers={"If-None-Match": tag}).status_code == 200
