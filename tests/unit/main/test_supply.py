"""The bill of materials, the licences in it, and secrets in files."""

from __future__ import annotations

import pytest

from benchmarks import supply

LOCK = """\
celery==5.7.0 \\
    --hash=sha256:18310a9c919f9029e4735367484d93e6a25cdfd30afdc474622cc263d9b35f6e \\
    --hash=sha256:6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0
Under_Scored==1.0 ; sys_platform == 'win32' \\
    --hash=sha256:83490def1f723413db5096591f7609ac52544805be93849170088ed04f5a2e0b
"""


def test_the_bill_has_every_package_of_the_lock_with_its_hashes() -> None:
    lock = supply.SERVER.read_text(encoding="utf-8")
    bill = supply.bill(lock)
    components = bill["components"]
    assert len(components) == lock.count("==") - lock.count(" == ")
    assert sum(len(component["hashes"]) for component in components) == lock.count("--hash=")
    assert len({component["bom-ref"] for component in components}) == len(components)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert supply.bill(lock) == bill


def test_a_line_of_a_lock_is_read_whole() -> None:
    celery, other = supply.packages(LOCK)
    assert (celery.name, celery.version, len(celery.hashes)) == ("celery", "5.7.0", 2)
    assert other.purl == "pkg:pypi/under-scored@1.0"


def test_all_locked_packages_may_be_used() -> None:
    assert supply.unlicensed(supply.ALL.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("licence", "may_be_used"),
    [
        ("Apache-2.0", True),
        ("MIT OR Apache-2.0", True),
        ("LGPL-3.0-only", True),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", True),
        ("GPL-3.0-or-later", False),
        ("GNU General Public License v3 (GPLv3)", False),
        ("GNU Affero General Public License v3", False),
        ("AGPL-3.0", False),
        ("SSPL-1.0", False),
        ("All rights reserved", False),
        (None, False),
    ],
)
def test_a_licence_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, licence: str | None, may_be_used: bool
) -> None:
    monkeypatch.setattr(supply, "licence_of", lambda name: licence)
    assert (supply.unlicensed(LOCK.partition("Under")[0]) == []) is may_be_used


def test_a_secret_is_named_by_its_place_alone() -> None:
    secret = "ghp" + "_a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"
    assert supply.secrets_in("deploy/x.env", f"A=1\nTOKEN={secret}\n") == ["deploy/x.env:2: key"]
    assert supply.secrets_in("docs/x.md", "postgresql://memory_app:" + "changeme@localhost/memory") == []


def test_no_file_that_git_knows_holds_a_secret() -> None:
    assert supply.leaks() == []
