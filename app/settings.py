"""Every setting of the service: type, unit, default, help. Read when `create_app` asks, never at import.

The table in the README is tested against this class. What the settings are used for is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

GIB = 1024**3
MIB = 1024**2

PREFIX = "EVERYHEAD_"

CommaSeparated = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    """One value per environment variable: EVERYHEAD_ and the field's name in capitals, except HOST and PORT."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, populate_by_name=True)

    host: str = Field("127.0.0.1", validation_alias="HOST", description="address to listen on")
    port: int = Field(8000, validation_alias="PORT", ge=0, le=65535, description="port to listen on (0: any free one)")
    allowed_hosts: CommaSeparated = Field(
        (),
        description="further host names that requests may name, comma-separated; this machine's own are always allowed",
    )
    data_dir: Path = Field(
        Path("~/.local/share/everyhead"), description="folder for runs, their texts, converted models and the id key"
    )
    models_dir: Path | None = Field(None, description="folder whose sub-folders are offered as local:NAME")
    default_model: str = Field("everyhead-mini", description="model that is listed first and loaded at the start")
    hub_allow: CommaSeparated = Field(("gpt2",), description="hub ids that may be downloaded, comma-separated")
    offline: bool = Field(False, description="never download, even when a user asks")
    store_bytes: int = Field(8 * GIB, ge=MIB, description="bytes of disk for runs; least recently used go first")
    backlog_bytes: int = Field(
        1 * GIB, ge=0, description="bytes of finished runs that may wait for the disk before the next run starts"
    )
    queue_limit: int = Field(16, ge=1, description="runs that may wait for the model")
    max_body_bytes: int = Field(1 * MIB, ge=1024, description="bytes of a request's body")
    max_weights: int = Field(2_000_000, ge=1, description="weights in one answer of POST /api/attention")
    torch_threads: int = Field(0, ge=0, description="threads for one model pass (0: torch's own choice)")

    @field_validator("allowed_hosts", "hub_allow", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """A comma-separated string becomes a tuple; anything else is left to pydantic."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("models_dir", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        """An empty variable means none (compose files pass one on)."""
        return None if value == "" else value

    @field_validator("data_dir", "models_dir")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        """~ becomes the home folder and the path absolute."""
        return None if value is None else value.expanduser().absolute()


def variable(place: Sequence[int | str]) -> str:
    """The environment variable of a field, as pydantic names its place in an error."""
    name = str(place[0])
    return name if name.isupper() else f"{PREFIX}{name.upper()}"
