"""The container files are valid and keep their promises: this machine only, no root, a health check, data outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contracts.repo import ROOT, read

TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(read("docker-compose.yml"))
    return data


def test_dockerfile_is_clean() -> None:
    done = subprocess.run(
        [str(TOOLS / "hadolint"), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_compose_file_is_valid() -> None:
    command = [str(TOOLS / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_ports_are_published_on_this_machine_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service["ports"]]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_service_keeps_its_data_in_the_volume(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert "data:/data" in service["volumes"]
        assert service["environment"]["EVERYHEAD_DATA_DIR"] == "/data"
        assert service["read_only"] is True


def test_the_gpu_service_starts_only_when_named(compose: dict[str, Any]) -> None:
    assert compose["services"]["gpu"]["profiles"] == ["gpu"]
    assert "profiles" not in compose["services"]["everyhead"]


def test_the_image_runs_without_root_and_is_checked() -> None:
    lines = read("Dockerfile").splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001:10001"]
    assert any(line.startswith("HEALTHCHECK ") for line in lines)


def test_the_image_has_every_folder_that_the_service_reads() -> None:
    """Each folder named at the top of .dockerignore's list is copied, and nothing else is let in."""
    let_in = {line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")}
    copied = {
        word for line in read("Dockerfile").splitlines() if line.startswith("COPY ") for word in line.split()[1:-1]
    }
    assert {word for word in copied if not word.startswith(("--", "/"))} == let_in
