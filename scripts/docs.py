"""Writes the tables that are made from the code: settings (README.md, .env.example), API calls (docs/api.md), models.

Run with `make docs`; a test compares the files with what this would write. It knows none of the prose around them.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic.fields import FieldInfo

from app.errors import EVENT_CODES, HTTP_CODES, STATUS
from app.settings import Settings
from models.shipped import read_card
from scripts.model_tables import (
    dates_forms,
    dates_heads,
    dates_training,
    mini_distances,
    mini_formation,
    mini_heads,
    mini_losses,
    mini_training,
)

ROOT = Path(__file__).resolve().parents[1]
ENV_HEAD = """\
# Settings of Everyhead, with their defaults. For docker compose: copy to .env and take the # away where you differ.
# `make run` takes the same names from the environment: EVERYHEAD_OFFLINE=true make run
"""


def variable(name: str, field: FieldInfo) -> str:
    """The environment variable that sets a field."""
    return field.validation_alias if isinstance(field.validation_alias, str) else f"EVERYHEAD_{name.upper()}"


def default(field: FieldInfo) -> str:
    """A field's default as one would write it into the environment."""
    value = field.default
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def readable(field: FieldInfo) -> str:
    """A field's default for the table: bytes also in the unit that people use."""
    text = default(field)
    if not text:
        return "none"
    value = field.default
    if isinstance(value, int) and (field.description or "").startswith("bytes"):
        unit, size = ("GiB", 1024**3) if value >= 1024**3 else ("MiB", 1024**2)
        return f"`{text}` ({value / size:g} {unit})"
    return f"`{text}`"


def kind(field: FieldInfo) -> str:
    """A field's type in a word."""
    names = {"bool": "true/false", "int": "number", "str": "text", "Path": "path"}
    for name, word in names.items():
        if re.search(rf"\b{name}\b", str(field.annotation)) and "tuple" not in str(field.annotation):
            return word
    return "list"


def settings_table() -> str:
    """One row per setting."""
    rows = [
        f"| `{variable(name, field)}` | {kind(field)} | {readable(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | type | default | what it sets |", "|---|---|---|---|", *rows])


def env_example() -> str:
    """All settings, each commented out with its default."""
    blocks = [
        f"# {field.description}\n# {variable(name, field)}={default(field)}"
        for name, field in Settings.model_fields.items()
    ]
    return ENV_HEAD + "\n" + "\n\n".join(blocks) + "\n"


def api_table(application: FastAPI) -> str:
    """One row per call of the OpenAPI document: what it does, what it answers."""
    rows = []
    for path, operations in application.openapi()["paths"].items():
        for method, operation in operations.items():
            rows.append(f"| `{method.upper()} {path}` | {_sentence(operation)} | {_codes(operation)} |")
    return "\n".join(["| call | what it does | answers |", "|---|---|---|", *rows])


def refusals_table() -> str:
    """One row per error code, by status."""
    rows = {(status, error.code): (error.__doc__ or "").split("\n")[0] for error, status in STATUS.items()}
    rows |= {(status, code): message for status, (code, message) in HTTP_CODES.items()}
    lines = [f"| {status} | `{code}` | {text} |" for (status, code), text in sorted(rows.items())]
    lines += [f"| in an event | `{code}` | {text} |" for code, text in EVENT_CODES.items()]
    return "\n".join(["| status | code | when, or what to do |", "|---|---|---|", *lines])


def _sentence(operation: dict[str, Any]) -> str:
    """The first line of an operation's description."""
    text: str = operation.get("description") or operation.get("summary") or ""
    return text.strip().split("\n")[0].replace("|", "\\|")


def _codes(operation: dict[str, Any]) -> str:
    """The status codes that an operation declares."""
    return ", ".join(sorted(operation["responses"]))


def replaced(text: str, name: str, table: str) -> str:
    """The text with what stands between the two markers of `name` replaced by the table."""
    start, end = f"<!-- {name}: made by `make docs` -->", f"<!-- end of {name} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    return f"{before}{start}\n\n{table}\n\n{end}{after}"


def documents() -> dict[str, str]:
    """Path → text of every file that holds something made here."""
    from app.main import create_app

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shipped = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    mini, dates = read_card("everyhead-mini"), read_card("everyhead-dates")
    formation = json.loads((ROOT / "docs" / "head-formation.json").read_text(encoding="utf-8"))
    shipped = replaced(shipped, "mini-formation", mini_formation(formation))
    for name, table in (
        ("training", mini_training),
        ("losses", mini_losses),
        ("heads", mini_heads),
        ("distances", mini_distances),
    ):
        shipped = replaced(shipped, f"mini-{name}", table(mini))
    for name, table in (("training", dates_training), ("heads", dates_heads), ("forms", dates_forms)):
        shipped = replaced(shipped, f"dates-{name}", table(dates))
    with tempfile.TemporaryDirectory() as folder:
        calls = api_table(create_app(Settings(data_dir=Path(folder))))
    return {
        "README.md": replaced(readme, "settings", settings_table()),
        "docs/api.md": replaced(replaced(api, "calls", calls), "refusals", refusals_table()),
        "docs/models.md": shipped,
        ".env.example": env_example(),
    }


if __name__ == "__main__":
    for path, text in documents().items():
        (ROOT / path).write_text(text, encoding="utf-8")
