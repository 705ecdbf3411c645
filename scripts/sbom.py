"""Writes scripts/recede.cdx.json, the list of crates that a wheel is built from, as Cargo.lock has them.

The list that maturin makes by itself has a time, a random number and the path of the checkout, so that no wheel would
be built twice with the same bytes. `python scripts/sbom.py` after a change of Cargo.lock; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "scripts" / "recede.cdx.json"


def sbom() -> str:
    """The list in the format of CycloneDX 1.5."""
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    [own] = [one for one in packages if "source" not in one]
    crates = [
        {
            "type": "library",
            "name": one["name"],
            "version": one["version"],
            "purl": f"pkg:cargo/{one['name']}@{one['version']}",
            "hashes": [{"alg": "SHA-256", "content": one["checksum"]}],
        }
        for one in packages
        if one is not own
    ]
    product = {"type": "library", "name": own["name"], "version": own["version"]}
    product["purl"] = f"pkg:pypi/{own['name']}@{own['version']}"
    found = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}
    return json.dumps({**found, "metadata": {"component": product}, "components": crates}, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(sbom(), encoding="utf-8")
