"""The OpenAPI document is the contract: generated requests get documented answers of the documented form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import MODEL, TEXT, make_app, serving, small_model

EXAMPLES = 12  # per call; enough for each parameter to be wrong at least once
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
CALLS = [
    f"{method.upper()} {path}"
    for path, methods in make_app(Path("never-made"), small_model()).openapi()["paths"].items()
    for method in methods
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FastAPI]]:
    """One application for all generated requests, on a real socket, with one finished run."""
    app = make_app(tmp_path_factory.mktemp("openapi"), small_model(max_tokens=512))
    with serving(app) as address:
        body = {"model": MODEL, "text": TEXT}
        app.state.run_id = httpx2.post(f"{address}/api/runs", json=body, trust_env=False).json()["id"]
        yield address, app


@pytest.fixture
def app(served: tuple[str, FastAPI]) -> FastAPI:
    """That application."""
    return served[1]


@pytest.mark.parametrize("call", CALLS)
def test_generated_requests_get_documented_answers(served: tuple[str, FastAPI], call: str) -> None:
    """Half of the requests name the run and the model that are there, so that they get past the first refusal."""
    address, app = served
    method, path = call.split()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=schemathesis.openapi.from_url(f"{address}/openapi.json")[path][method].as_strategy())
    def check(case: Case[Any]) -> None:
        turn = len(str((case.query, case.body))) % 2
        if turn and method != "DELETE" and "run_id" in (case.path_parameters or {}):
            case.path_parameters = {"run_id": app.state.run_id}
        if turn and isinstance(case.body, dict):
            case.body["model"] = MODEL
        response = case.call(base_url=address)
        case.validate_response(response, checks=list(CHECKS))

    check()


def test_every_call_documents_its_refusals(app: FastAPI) -> None:
    calls = [
        (f"{method.upper()} {path}", set(call["responses"]))
        for path, methods in app.openapi()["paths"].items()
        for method, call in methods.items()
    ]
    assert len(calls) >= 16
    for name, documented in calls:
        assert "421" in documented, name
        if name.startswith("POST"):
            assert "415" in documented, name
        if "{run_id}" in name or "{model_id}" in name:
            assert "404" in documented, name
    assert TEXT not in str(calls)


def test_the_documented_error_is_the_one_form(app: FastAPI) -> None:
    document = app.openapi()
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert set(document["components"]["schemas"]["ErrorBody"]["required"]) == {"code", "message", "details"}


def test_no_page_of_another_host_is_served(served: tuple[str, FastAPI]) -> None:
    with httpx2.Client(base_url=served[0], trust_env=False) as client:
        assert client.get("/redoc").status_code == 404
        assert "cdn" not in client.get("/docs").text
