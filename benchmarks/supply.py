"""What the product is made of: a bill of materials, the licences in it, and secrets that do not belong in the tree.

``python -m benchmarks.supply sbom`` prints the bill of ``requirements-server.lock`` as CycloneDX 1.6; ``licences`` and
``secrets`` fail and name what is not as it must be. All of it works without a network, from the locks, the metadata of
what is installed, and the files that git knows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from memory_app.language.redaction.tokens import find_tokens

ROOT = Path(__file__).resolve().parent.parent
SERVER, ALL = ROOT / "requirements-server.lock", ROOT / "requirements.lock"

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

ALLOWED = re.compile(
    r"Apache|MIT|BSD|ISC\b|ISCL|PSF|Python Software Foundation|MPL|Mozilla|Zlib|Unlicense|0BSD|CC0|PostgreSQL"
    r"|LGPL|Lesser General Public",
    re.IGNORECASE,
)
"""Licences of packages that a product under Apache 2.0 may use; the LGPL as they stay packages of their own."""

FORBIDDEN = re.compile(
    r"(?<!L)\b(?:A?GPL|Affero)|(?<!Lesser )General Public|SSPL|Commons Clause", re.IGNORECASE
)

KNOWN = {
    "py3langid": "BSD-3-Clause",
}
"""Of packages whose metadata names none; read in their repositories."""

_SKIPPED = (".lock", ".json", ".jsonl", ".svg", ".png", ".ico")
EXAMPLES = re.compile(
    r"example|EXAMPLE|forged|abc123|changeme|password|secret|0{8}|s3cr3t|hunter2", re.IGNORECASE
)
"""Words in what only shows how a secret looks."""


@dataclass(frozen=True, slots=True)
class Package:
    """A line of a lock, and the digests of the files that may be installed for it."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def packages(lock: str) -> Iterator[Package]:
    """The packages of a lock, as its text says."""
    entries = re.split(r"\n(?=\S)", lock)
    for entry in entries:
        pinned = _PINNED.match(entry)
        if pinned is not None:
            yield Package(pinned[1], pinned[2], tuple(_HASH.findall(entry)))


def licence_of(name: str) -> str | None:
    """The licence that an installed package names; None where it names none or is not installed."""
    if not is_installed(name):
        return None
    fields = metadata.metadata(name)
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in fields.get_all("Classifier", [])
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    # The first line only: some packages put the whole text there.
    named = fields.get("License-Expression") or " OR ".join(classifiers) or fields.get("License") or ""
    return named.strip().partition("\n")[0] or KNOWN.get(name)


def bill(lock: str) -> dict[str, Any]:
    """The bill of materials of a lock in the form of CycloneDX 1.6. The same lock has the same bill."""
    components = [_component(package) for package in packages(lock)]
    own = metadata.version("memory-app")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "memory-app",
                "name": "memory-app",
                "version": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }


def _component(package: Package) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
    }
    licence = licence_of(package.name)
    if licence is not None:
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def unlicensed(lock: str) -> list[str]:
    """Packages whose licence is not among those that may be used, or that name none."""
    wrong = []
    for package in packages(lock):
        # The locks hold packages of other systems and Pythons, which are not installed here.
        if not is_installed(package.name):
            continue
        licence = licence_of(package.name)
        if licence is None or FORBIDDEN.search(licence) or not ALLOWED.search(licence):
            wrong.append(f"{package.name} {package.version}: {licence or 'names no licence'}")
    return wrong


def is_installed(name: str) -> bool:
    """Whether the environment has the package."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def secrets_in(path: str, content: str) -> list[str]:
    """Where keys, tokens and passwords in addresses stand in a file: path and line, never the secret."""
    places = []
    for span in find_tokens(content):
        if not EXAMPLES.search(content[span.start : span.end]):
            places.append(f"{path}:{content.count(chr(10), 0, span.start) + 1}: {span.kind.value}")
    return places


def tracked() -> Iterator[Path]:
    """Files that git knows, and that somebody wrote."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        # Tests hold what must be found and taken out.
        if name and not name.startswith("tests/") and not name.endswith(_SKIPPED):
            yield ROOT / name


def leaks() -> list[str]:
    places: list[str] = []
    for path in tracked():
        try:
            content = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        places += secrets_in(str(path.relative_to(ROOT)), content)
    return places


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["sbom"]:
        print(json.dumps(bill(SERVER.read_text(encoding="utf-8")), indent=2))
        return 0
    if list(arguments) == ["licences"]:
        found = unlicensed(ALL.read_text(encoding="utf-8"))
    elif list(arguments) == ["secrets"]:
        found = leaks()
    else:
        print("sbom, licences or secrets", file=sys.stderr)
        return 2
    print(*(found or [f"{arguments[0]}: nothing wrong"]), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
