"""What is shipped names no path of the machine that built it, and lists its crates."""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

CHECK = ROOT / "scripts" / "check_dist.py"
BUILT = sorted((ROOT / "dist").glob("*")) if (ROOT / "dist").is_dir() else []
CORE = sorted((ROOT / "python" / "recede").glob("_core*.so"))


def check(*files: Path) -> str:
    """What the script says of files; empty if there is nothing to say."""
    done = subprocess.run([sys.executable, CHECK, *files], capture_output=True, text=True)
    assert (done.returncode == 0) == (not done.stderr), done
    return done.stderr


CARGO = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")


@pytest.mark.parametrize("path", [str(ROOT), CARGO, "/home/somebody/x", "/Users/builder/x", "/root/.cargo"])
def test_a_path_of_the_machine_is_found(tmp_path: Path, path: str) -> None:
    content = b"\x00/cargo/memchr-2.8.3/src/lib.rs" + path.encode() + b"/src/lib.rs\x00"
    wheel, archive, library = tmp_path / "a.whl", tmp_path / "a.tar.gz", tmp_path / "a.so"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("recede/_core.abi3.so", content)
    with tarfile.open(archive, "w:gz") as file:
        entry = tarfile.TarInfo("recede-1/_core.so")
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content))
    library.write_bytes(content)
    for built, name in ((wheel, "recede/_core.abi3.so"), (archive, "recede-1/_core.so"), (library, "a.so")):
        assert f"{built.name}: {name} has " in check(built)
    library.write_bytes(b"\x00/cargo/memchr-2.8.3/src/lib.rs\x00/rustc/59807616e/library/core/src/str.rs\x00")
    assert check(library) == ""


def test_a_path_in_a_list_of_crates_is_found(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(
            "recede-1.dist-info/sboms/recede.cyclonedx.json", '{"bom-ref": "path+file:///home/runner/work/r"}'
        )
        file.writestr("recede/a.py", '"""A home in a text: /home/runner/work."""')
    assert "sboms/recede.cyclonedx.json has /home/runner/" in check(wheel)
    assert "a.py" not in check(wheel)


@pytest.mark.skipif(not BUILT, reason="`make dist` builds them")
def test_what_was_built_names_no_path_of_this_machine() -> None:
    assert check(*BUILT) == ""


@pytest.mark.skipif(not BUILT, reason="`make dist` builds them")
def test_a_wheel_lists_its_crates_as_they_are_locked() -> None:
    for path in (ROOT / "dist").glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            [listed] = [name for name in wheel.namelist() if "/sboms/" in name]
            assert wheel.read(listed) == (ROOT / "scripts" / "recede.cdx.json").read_bytes()


@pytest.mark.skipif(not CORE, reason="the core is installed elsewhere")
def test_the_core_names_no_path_of_this_machine() -> None:
    if CORE[0].stat().st_mtime < (ROOT / "Makefile").stat().st_mtime:
        pytest.skip("it was built before the Makefile changed: `make build`")
    assert check(*CORE) == ""


def test_the_list_of_crates_is_that_of_the_lock_file() -> None:
    tomllib: Any = pytest.importorskip("tomllib")  # Python 3.11
    script = runpy.run_path(str(ROOT / "scripts" / "sbom.py"))
    assert script["TARGET"].read_text(encoding="utf-8") == script["sbom"](), "run python scripts/sbom.py"
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    listed = {(one["name"], one["version"]) for one in json.loads(script["sbom"]())["components"]}
    assert listed == {(one["name"], one["version"]) for one in locked} - {("recede", locked_version(locked))}


def locked_version(packages: list[dict[str, Any]]) -> str:
    version: str = next(one["version"] for one in packages if one["name"] == "recede")
    return version


def test_releases_are_built_for_each_platform_and_checked() -> None:
    yaml: Any = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    built = {(one["target"], one["manylinux"]) for one in jobs["wheels"]["strategy"]["matrix"]["include"]}
    linux = {(target, libc) for target in ("x86_64", "aarch64") for libc in ("2_28", "musllinux_1_2")}
    assert built == linux | {("universal2-apple-darwin", "off"), ("x64", "off"), ("aarch64", "off")}
    for name in ("wheels", "free-threaded", "archive"):
        steps = jobs[name]["steps"]
        assert any("check_dist.py dist/*" in step.get("run", "") for step in steps)
        assert any("SOURCE_DATE_EPOCH" in step.get("run", "") for step in steps)
