"""What must not be in a committed file: addresses of package registries, one machine's paths, open ends, big blobs."""

from __future__ import annotations

import re

import pytest

from tests.contracts.repo import ROOT, files_under, project_files, read

TEXT = [path for path in project_files() if not path.endswith((".png", ".safetensors", ".jpg", ".ico", ".woff2"))]
SELF = "tests/contracts/test_hygiene.py"
# Written in pieces, so that this file does not match itself.
REGISTRIES = re.compile(
    "|".join(["pypi" r"\.org", "python" r"hosted\.org", "npm" r"js\.(?:org|com)", "deb" r"\.debian\.org"])
)
MACHINE_PATH = re.compile(r"(?:^|[^\w.])/(?:work|farm|opt/wheels|opt/pypi[\w-]*|home/[a-z]+|Users/\w+)(?:/|[^\w]|$)")
OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
SKIPPED = re.compile(r"pytest\.(?:skip|xfail)\(|@pytest\.mark\.(?:skip|xfail)|assert True\b")
# Tests that may be skipped, each with its reason beside the call.
MAY_SKIP: set[str] = set()
MAX_BYTES = 2_000_000
MAX_WEIGHT_BYTES = 12_000_000


@pytest.mark.parametrize("path", [path for path in TEXT if path != SELF])
def test_no_registry_no_machine_path_no_open_end(path: str) -> None:
    text = read(path)
    assert REGISTRIES.findall(text) == []
    assert MACHINE_PATH.findall(text) == []
    assert OPEN_END.findall(text) == []


@pytest.mark.parametrize("path", [path for path in files_under("tests") if path != SELF])
def test_nothing_is_skipped(path: str) -> None:
    assert path in MAY_SKIP or SKIPPED.findall(read(path)) == []


def test_files_are_not_big() -> None:
    sizes = {path: (ROOT / path).stat().st_size for path in project_files()}
    limit = {path: MAX_WEIGHT_BYTES if path.startswith("models/weights/") else MAX_BYTES for path in sizes}
    assert {path: size for path, size in sizes.items() if size > limit[path]} == {}


def test_constraints_pin_every_package_exactly() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.]*", line)] == []


def test_requirements_are_pinned_by_the_constraints() -> None:
    def names(path: str) -> set[str]:
        found = re.findall(r"^([A-Za-z0-9._-]+)", read(path), flags=re.MULTILINE)
        return {re.sub(r"[-_.]+", "-", name).lower() for name in found}

    assert names("requirements.txt") | names("requirements-dev.txt") <= names("constraints.txt")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (REGISTRIES, "--index-url https://" + "pypi" + ".org/simple"),
        (MACHINE_PATH, "cd " + "/wo" + "rk/x"),
        (OPEN_END, "# TO" + "DO: later"),
        (SKIPPED, "@pytest.mark." + "skip"),
    ],
)
def test_a_violation_is_seen(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
