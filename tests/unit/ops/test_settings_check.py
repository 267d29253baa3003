"""Doctor names variables that are almost a setting, and leaves alone all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_app.ops import settings_check
from memory_app.ops.check import State


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("MEMORY_DATABASE_URL", "MEMORY_DATABASE__URL"),
        ("MEMORY_DATABSE__URL", "MEMORY_DATABASE__URL"),
        ("memory_embeding__provider", "MEMORY_EMBEDDING__PROVIDER"),
        ("MEMORY_DATAFOLDER", "MEMORY_DATA_FOLDER"),
    ],
)
@pytest.mark.parametrize("is_in_file", [False, True])
def test_a_misspelt_setting_is_named_with_the_right_one(
    tmp_path: Path, name: str, setting: str, is_in_file: bool
) -> None:
    file = tmp_path / ".env"
    file.write_text(f"{name}=kanarienvogel\n" if is_in_file else "", encoding="utf-8")

    check = settings_check.look({} if is_in_file else {name: "kanarienvogel"}, file)

    assert (check.state, check.to_do) == (State.WARN, f"write {setting}")
    assert name.upper() in check.found
    assert "kanarienvogel" not in check.found


def test_settings_and_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    environment = {
        "MEMORY_DATABASE__URL": "postgresql://",
        "MEMORY_DATA_FOLDER": "/tmp",
        "MEMORY_CHAT": "{}",
        "MEMORY_APP_PASSWORD": "x",
        "MEMORY_LIMIT": "2g",
        "PATH": "/bin",
    }

    assert settings_check.look(environment, tmp_path / "none").state is State.OK


def test_a_file_that_cannot_be_read_is_no_fault_of_names(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"MEMORY_DATABASE_URL=\xff\xfe")

    assert settings_check.look({}, file).state is State.OK
