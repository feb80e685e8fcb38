"""One typed settings object a process: arguments, then `SAGEBOOK_…` variables, then a TOML file, then defaults."""

from __future__ import annotations

from pathlib import Path

import platformdirs
from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


def default_database_url() -> str:
    """A SQLite file in the user's data folder (XDG)."""
    return f"sqlite:///{platformdirs.user_data_path('sagebook') / 'ledger.db'}"


def config_file() -> Path:
    """Where the TOML file is looked for."""
    return platformdirs.user_config_path("sagebook") / "config.toml"


class Settings(BaseSettings):
    """Settings of a ledger process."""

    model_config = SettingsConfigDict(env_prefix="SAGEBOOK_", extra="ignore")

    database_url: str = Field(default_factory=default_database_url)
    """SQLAlchemy URL: `sqlite:///FILE` or `postgresql+psycopg://…`."""
    host: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    embeddings: str = "off"
    """`off`: retrieval is lexical; `local`: the model that the extra `dense` ships; else an OpenAI-like base URL."""
    embeddings_model: str = ""
    """The model to ask the endpoint for."""
    embeddings_key: str | None = None
    """Its key, from the environment alone."""
    judges: str = ""
    """Public keys of the judges whose reports are taken, in base64, parted by commas; empty: any judge's."""
    log_key: Path = Field(default_factory=lambda: platformdirs.user_data_path("sagebook") / "log.key")
    """File of the key that signs checkpoints; made at first use."""
    log_name: str = ""
    """What checkpoints call this ledger, such as `ledger.example.org`; default: a name made of the key."""
    log_format: str = "console"
    """`console` or `json`, one event a line on standard error."""
    log_level: str = "warning"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, and that over the file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=config_file())
