"""Runs that read more than one text: a target for an encoder–decoder, given or written, and a pair for an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.services.identity import run_id
from app.services.records import Options, RunRecord, Texts
from tests.api.conftest import MODEL, PAIRS, SEQ2SEQ, TEXT, Start, make_run, settle, small_model
from tests.fakes import FakeModel

TARGET = "Le chat vit le chat"
PAIR = "It saw it too"
SITES = ["encoder.self", "decoder.self", "decoder.cross"]


ROUNDING = 1e-5  # a capture read from the disk lies elsewhere in memory: last bits of scores of 11 (1e-6 each) differ


def model_of(client: TestClient, model_id: str) -> FakeModel:
    """The fake behind a model."""
    found: FakeModel = client.app.state.services.models.others[model_id]  # type: ignore[attr-defined]
    return found


def refused(client: TestClient, path: str = "/api/runs", **body: Any) -> dict[str, Any]:
    """The error that a request gets; its status is 422."""
    answer = client.post(path, json={"text": TEXT, **body})
    assert answer.status_code == 422, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_a_given_target_is_read_by_the_decoder(client: TestClient) -> None:
    run = make_run(client, model=SEQ2SEQ, target_text=TARGET)
    assert run["options"] == {"truncate": "error", "add_special_tokens": True, "target": "given", "pair": False}
    source, target = run["tokens"]["source"], run["tokens"]["target"]
    assert [token["text"] for token in target] == ["<s>", "Le", " chat", " vit", " le", " chat"]
    assert [target[0]["special"], target[1]["index"]] == [True, 1]
    given = model_of(client, SEQ2SEQ).given
    assert given["token_ids"] == [token["id"] for token in source]
    assert given["target_ids"] == [token["id"] for token in target]
    assert run["bytes"] == model_of(client, SEQ2SEQ).capture_bytes(len(source), len(target))


def test_each_site_has_its_own_axes(client: TestClient) -> None:
    run = make_run(client, "a longer source than the target is", model=SEQ2SEQ, target_text="short")
    n_source, n_target = len(run["tokens"]["source"]), len(run["tokens"]["target"])
    assert n_source != n_target
    sizes = dict(zip(SITES, ([n_source, n_source], [n_target, n_target], [n_target, n_source]), strict=True))
    assert [site["site"] for site in run["sites"]] == SITES
    for site in run["sites"]:
        assert [site["query_len"], site["key_len"]] == sizes[site["site"]]
        window = client.get(run["links"]["weights"], params={"site": site["site"], "layer": 1, "head": 2}).json()
        assert [len(window["weights"]), len(window["weights"][0])] == sizes[site["site"]]
    cross = client.get(run["links"]["weights"], params={"site": "decoder.cross", "layer": 1, "head": 2}).json()
    assert all(cell is not None for row in cross["weights"] for cell in row), "nothing is masked"


def test_without_a_target_the_model_writes_its_own(client: TestClient) -> None:
    run = make_run(client, model=SEQ2SEQ)
    assert run["options"]["target"] == "written"
    assert [token["text"] for token in run["tokens"]["target"]][:4] == ["<s>", "what", " the", " fake"]
    assert run["sites"][2]["query_len"] == len(run["tokens"]["target"])
    assert run["id"] != make_run(client, model=SEQ2SEQ, target_text=TARGET)["id"]
    assert run["id"] == make_run(client, model=SEQ2SEQ)["id"]


def test_models_with_one_input_have_no_target(run: dict[str, Any]) -> None:
    assert run["tokens"]["target"] == []
    assert (run["options"]["target"], run["options"]["pair"]) == (None, False)


def test_a_pair_of_texts(client: TestClient) -> None:
    run = make_run(client, model=PAIRS, text_pair=PAIR)
    assert run["options"]["pair"] is True
    for segment, text in ((0, TEXT), (1, PAIR)):
        own = [token for token in run["tokens"]["source"] if token["segment"] == segment]
        assert "".join(token["text"] for token in own if not token["special"]) == text
        assert all(text[token["start"] : token["end"]] == token["text"] for token in own if not token["special"])
    assert model_of(client, PAIRS).given["segments"] == [token["segment"] for token in run["tokens"]["source"]]
    assert [token["index"] for token in run["tokens"]["source"]] == list(range(run["sites"][0]["key_len"]))
    assert make_run(client, model=PAIRS)["options"]["pair"] is False
    assert model_of(client, PAIRS).given["segments"] is None


def test_tokens_of_a_pair_without_a_run(client: TestClient) -> None:
    answer = client.post("/api/tokenize", json={"model": PAIRS, "text": TEXT, "text_pair": PAIR}).json()
    assert answer["count"] == len(make_run(client, model=PAIRS, text_pair=PAIR)["tokens"]["source"])
    assert [token["segment"] for token in answer["tokens"]][-2:] == [1, 1]


@pytest.mark.parametrize("path", ["/api/runs", "/api/attention"])
@pytest.mark.parametrize(("model", "kind"), [(MODEL, "a decoder"), (PAIRS, "an encoder")])
def test_a_target_is_for_encoder_decoders_alone(client: TestClient, path: str, model: str, kind: str) -> None:
    error = refused(client, path, model=model, target_text=TARGET)
    assert error["code"] == "invalid_request"
    assert set(error["details"]["fields"]) == {"target_text"}
    assert f"this is {kind}; leave it out" in error["details"]["fields"]["target_text"]


@pytest.mark.parametrize("path", ["/api/runs", "/api/attention", "/api/tokenize"])
@pytest.mark.parametrize("model", [MODEL, SEQ2SEQ])
def test_a_pair_is_for_models_that_take_one(client: TestClient, path: str, model: str) -> None:
    error = refused(client, path, model=model, text_pair=PAIR)
    assert (error["code"], set(error["details"]["fields"])) == ("invalid_request", {"text_pair"})
    assert "leave it out" in error["message"]


def test_a_model_that_turns_out_to_take_no_pair_refuses_it(client: TestClient) -> None:
    """The catalogue only knows the configuration; the loaded model knows its tokenizer as well."""
    model = model_of(client, PAIRS)
    listed = client.app.state.services.models.entry(PAIRS)  # type: ignore[attr-defined]
    model.description = FakeModel(4, 6, kind="encoder").description
    client.app.state.services.models.entry = lambda _: listed  # type: ignore[attr-defined]
    assert set(refused(client, model=PAIRS, text_pair=PAIR)["details"]["fields"]) == {"text_pair"}


@pytest.mark.parametrize(("model", "field"), [(SEQ2SEQ, "target_text"), (PAIRS, "text_pair")])
def test_an_empty_second_text_is_named(client: TestClient, model: str, field: str) -> None:
    error = refused(client, model=model, **{field: " \n"})
    assert (error["code"], error["details"]) == ("text_empty", {"field": field})
    assert "or leave it out" in error["message"]


@pytest.mark.parametrize("truncate", ["error", "cut_head", "cut_tail"])
@pytest.mark.parametrize(
    ("model", "field", "count"), [(SEQ2SEQ, "target_text", 41), (PAIRS, "text_pair", 1 + 5 + 1 + 40 + 1)]
)
def test_what_cannot_be_cut_is_never_cut(start: Start, truncate: str, model: str, field: str, count: int) -> None:
    client = start(small_model(max_tokens=8))
    error = refused(client, model=model, truncate=truncate, **{field: "word " * 39 + "word"})
    assert error["code"] == "text_too_long"
    assert error["details"] == {"field": field, "count": count, "limit": 8, "choices": []}
    assert "truncate" not in error["message"]


def test_a_long_source_is_cut_beside_a_target(start: Start) -> None:
    run = make_run(start(small_model(max_tokens=6)), "word " * 20, model=SEQ2SEQ, target_text="w", truncate="cut_tail")
    assert (len(run["tokens"]["source"]), run["text"]["cut"]) == (6, "cut_tail")


def test_an_implementation_that_the_model_lacks(client: TestClient) -> None:
    error = refused(client, model=MODEL, implementation="own")
    assert error["details"]["fields"] == {"implementation": "transformers for this model"}
    error = refused(client, model=MODEL, implementation="other")
    assert error["details"]["fields"] == {"implementation": "own or transformers"}
    assert make_run(client, implementation="transformers")["id"] == make_run(client)["id"], "it is the default"


def test_the_id_depends_on_everything_that_decides_the_result() -> None:
    same: dict[str, Any] = {
        "model": "m",
        "revision": "r",
        "implementation": "own",
        "dtype": "model",
        "format_version": "1",
        "texts": Texts("text"),
        "options": Options(),
    }
    others: list[dict[str, Any]] = [
        {"implementation": "transformers"},
        {"texts": Texts("text", pair="second")},
        {"texts": Texts("text", target="second")},
        {"options": Options(target="written")},
        {"options": Options(pair=True)},
    ]
    ids = [run_id(b"key", **(same | change)) for change in ({}, *others)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("path", ["weights?layer=0&head=0", "rows?layer=0&head=0", "overview"])
def test_a_site_is_asked_for_where_there_are_several(client: TestClient, path: str) -> None:
    run = make_run(client, model=SEQ2SEQ)
    answer = client.get(f"{run['links']['self']}/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
    assert all(site in answer.json()["error"]["details"]["fields"]["site"] for site in SITES)


def test_heads_of_all_sites(client: TestClient) -> None:
    run = make_run(client, "one two three four five six seven eight nine", model=SEQ2SEQ, target_text="word " * 9)
    heads = client.get(f"{run['links']['self']}/heads").json()["heads"]
    assert [sum(head["site"] == site for head in heads) for site in SITES] == [12, 12, 12]
    cross = heads[-1]
    assert (cross["scores"]["previous"], cross["distance"]) == (None, None)
    assert cross["scores"]["first"] is not None


def test_the_one_call_form_of_a_site(client: TestClient) -> None:
    error = refused(client, "/api/attention", model=SEQ2SEQ, target_text=TARGET)
    assert all(site in error["details"]["fields"]["site"] for site in SITES)
    assert refused(client, "/api/attention", model=SEQ2SEQ, site="decoder.other")["code"] == "out_of_range"
    body = {"model": SEQ2SEQ, "text": TEXT, "site": "decoder.cross", "layers": [1], "heads": [3]}
    answer = client.post("/api/attention", json={**body, "target_text": TARGET}).json()
    run = make_run(client, model=SEQ2SEQ, target_text=TARGET)
    window = client.get(run["links"]["weights"], params={"site": "decoder.cross", "layer": 1, "head": 3}).json()
    assert answer["run"] == run["id"]
    np.testing.assert_allclose(answer["weights"], [[window["weights"]]], rtol=ROUNDING)
    assert [len(answer["target_tokens"]), len(answer["tokens"])] == [len(window["weights"]), len(window["weights"][0])]
    written = client.post("/api/attention", json=body).json()
    assert written["run"] == make_run(client, model=SEQ2SEQ)["id"]


@pytest.mark.parametrize("site", SITES)
def test_too_many_weights_of_a_site_are_refused(start: Start, site: str) -> None:
    client = start(max_weights=10)
    answer = client.post(
        "/api/attention", json={"model": SEQ2SEQ, "text": TEXT, "target_text": TARGET, "site": site, "layers": [0]}
    )
    assert (answer.status_code, answer.json()["error"]["details"]["weights"]) == (413, 4 * 6 * 6)
    assert model_of(client, SEQ2SEQ).runs == 0, "refused before the model ran"


def test_a_check_on_request_reads_the_same_target(client: TestClient) -> None:
    run = make_run(client, "word " * 300, model=SEQ2SEQ, target_text=TARGET)
    model = model_of(client, SEQ2SEQ)
    ran, model.given = model.given, {}
    client.post(run["links"]["check"], headers={"Content-Type": "application/json"})
    assert model.given == ran


@pytest.mark.parametrize(
    "options", [{"model": SEQ2SEQ, "target_text": TARGET}, {"model": SEQ2SEQ}, {"model": PAIRS, "text_pair": PAIR}]
)
def test_a_run_is_the_same_after_a_restart(start: Start, tmp_path: Path, options: dict[str, str]) -> None:
    first = start(data_dir=tmp_path / "kept")
    made = make_run(first, **options)
    settle(first, made)
    run = first.get(made["links"]["self"]).json()
    site = {"site": run["sites"][-1]["site"], "layer": 2, "head": 1}
    window = first.get(run["links"]["weights"], params=site).json()
    first.__exit__()
    second = start(data_dir=tmp_path / "kept")
    assert second.get(run["links"]["self"]).json() == run
    assert [run[name] for name in ("tokens", "options", "sites")] == [
        made[name] for name in ("tokens", "options", "sites")
    ]
    again = second.get(run["links"]["weights"], params=site).json()
    np.testing.assert_allclose(again["weights"], window["weights"], rtol=ROUNDING)


def test_a_record_from_before_targets_can_be_read(run: dict[str, Any]) -> None:
    old = {**run, "options": {"truncate": "error", "add_special_tokens": True}}
    old["tokens"] = {"source": [dict(token) for token in run["tokens"]["source"]], "target": []}
    for token in old["tokens"]["source"]:
        del token["segment"]
    assert RunRecord.from_dict(old).as_dict()["options"] == run["options"]
    assert RunRecord.from_dict(old).as_dict()["tokens"] == run["tokens"]
