"""Signs of life as files: of the living alone, and not to be forged by other users."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_app import life
from memory_app.errors import Misconfigured
from memory_app.life import SILENT_AFTER_SECONDS, LifeFile
from memory_app.ops.health_command import check

ROOT = Path(__file__).parents[3]
Health = Callable[..., tuple[int, str]]
LEAVE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from memory_app.life import LifeFile
LifeFile("finder", Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def health(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Status and words of ``memory health``."""

    def run(*arguments: str) -> tuple[int, str]:
        try:
            check([*arguments, "--folder", str(tmp_path)])
            status = 0
        except SystemExit as end:
            status = int(str(end.code))
        return status, "".join(capsys.readouterr())

    return run


def grow_old(file: LifeFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sign be older than a living loop's."""
    later = life.time.monotonic() + SILENT_AFTER_SECONDS + 1
    monkeypatch.setattr(life.time, "monotonic", lambda: later)


def test_a_part_that_goes_on_is_well(tmp_path: Path, health: Health) -> None:
    LifeFile("finder", tmp_path)

    assert health("finder")[0] == 0
    assert health("beat") == (
        1,
        "memory: no beat of this user runs here, or it has not started yet\n",
    )


def test_a_part_that_stands_still_is_named_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, health: Health
) -> None:
    file = LifeFile("worker-ingest", tmp_path)
    grow_old(file, monkeypatch)

    status, output = health("worker")

    assert status == 1
    assert f"worker-ingest (process {os.getpid()}) has not gone on for 61 s" in output
    assert health("worker", "--queue", "model")[0] == 1
    file.touch()
    assert health("worker", "--queue", "ingest")[0] == 0


def test_one_that_hangs_is_not_hidden_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, health: Health
) -> None:
    grow_old(LifeFile("worker-ingest", tmp_path), monkeypatch)
    LifeFile("worker-model", tmp_path)

    assert health("worker")[0] == 1


def test_what_a_killed_process_left_is_no_sign_and_is_swept(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", LEAVE_AND_DIE, str(tmp_path)], env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert [path.stem for path in tmp_path.iterdir()] == ["finder"]
    assert life.read(tmp_path) == ()

    LifeFile("beat", tmp_path)

    assert [path.stem for path in tmp_path.iterdir()] == ["beat"]


def test_a_part_that_ends_leaves_nothing(tmp_path: Path) -> None:
    LifeFile("finder", tmp_path).remove()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(Misconfigured, match="MEMORY_LIFE_FOLDER"):
        LifeFile("finder", tmp_path)


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Misconfigured):
        LifeFile("finder", link)
