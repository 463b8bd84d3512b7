"""Matrices that stay in their file: the same rows as decoded at once, and no more memory than blocks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bilex import BilexError
from bilex.vectors import WordVectors
from bilex.vectors.folder import read_tensors, write_matrix
from bilex.vectors.stored import StoredRows, row_blocks


def saved(folder: Path, dtype: str, unit: bool = True) -> WordVectors:
    matrix = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    words = WordVectors([f"w{i}" for i in range(40)], matrix)
    (words.preprocessed("unit") if unit else words).save(folder, dtype=dtype)
    return WordVectors.load(folder)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_rows_are_those_of_the_whole_matrix(tmp_path: Path, dtype: str, unit: bool) -> None:
    vectors = saved(tmp_path / "v", dtype, unit)
    rows = vectors.vectors
    assert isinstance(rows, StoredRows)
    whole = np.asarray(rows)
    assert whole.dtype == rows.dtype == np.float32
    assert (whole.shape, whole.size, len(whole)) == (rows.shape, rows.size, len(rows))
    for chosen in (slice(3, 9), slice(None, None, 7), slice(39, 60), np.array([5, 1, 1]), [0, 39]):
        np.testing.assert_array_equal(rows[chosen], whole[chosen])
    np.testing.assert_array_equal(rows[-1], whole[-1])
    np.testing.assert_array_equal(vectors["w7"], whole[7])
    np.testing.assert_array_equal(np.concatenate(list(row_blocks(rows, 16))), whole)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6) == unit


def test_parts_stay_as_they_are_stored(tmp_path: Path) -> None:
    vectors = saved(tmp_path / "v", "int8")
    assert isinstance(vectors.vectors, StoredRows)
    whole = np.asarray(vectors.vectors)
    taken = vectors.vectors.part(np.array([8, 2, 30]))
    parts = {
        "head": (vectors.head(10).vectors, whole[:10]),
        "taken": (taken, whole[[8, 2, 30]]),
        "head of taken": (taken.part(slice(2)), whole[[8, 2]]),
        "taken of taken": (taken.part(np.array([2, 0])), whole[[30, 8]]),
    }
    for name, (part, expected) in parts.items():
        assert isinstance(part, StoredRows), name
        assert part.stored.dtype == np.int8, name
        np.testing.assert_array_equal(np.asarray(part), expected, name)


def test_a_damaged_number_is_reported_when_its_row_is_used(tmp_path: Path) -> None:
    saved(tmp_path / "v", "float16", unit=False)
    file = tmp_path / "v" / "vectors.safetensors"
    file.write_bytes(file.read_bytes()[:-2] + np.float16(np.inf).tobytes())
    rows = WordVectors.load(tmp_path / "v", verify=False).vectors
    assert np.isfinite(rows[:39]).all()
    with pytest.raises(BilexError, match="holds NaN or infinity, so it was damaged"):
        rows[30:]


def test_a_file_written_in_blocks_is_one_that_safetensors_reads(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    matrix = np.random.default_rng(1).normal(size=(11, 3)).astype(np.float32)
    mean = np.arange(3, dtype=np.float32)
    for dtype in ("float32", "float16", "int8"):
        path = tmp_path / dtype
        write_matrix(path, "rows", [matrix[:4], matrix[4:]], (11, 3), dtype, {"mean.0": mean})
        theirs, ours = load_file(path), read_tensors(path)
        assert sorted(theirs) == sorted(ours)
        for name, tensor in theirs.items():
            np.testing.assert_array_equal(tensor, ours[name])
        assert theirs["rows"].dtype == np.dtype(dtype)
        decoded = theirs["rows"] * theirs.get("rows.scales", np.float32(1))
        np.testing.assert_allclose(decoded, matrix, atol=0.02 if dtype == "int8" else 2e-3)
        np.testing.assert_array_equal(theirs["mean.0"], mean)


PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
import torch
from bilex.aligners.preparation import UnitRows
from bilex.core.machine import peak_memory
from bilex.vectors import WordVectors
from bilex.vectors.folder import write_blocks

WORDS, DIM, BLOCK, folder = 150_000, 256, 4096, Path(sys.argv[1])
names = [f"w{i}" for i in range(WORDS)]
rng = np.random.default_rng(0)

def blocks(words):
    for start in range(0, words, BLOCK):
        yield rng.standard_normal((min(BLOCK, words - start), DIM), dtype=np.float32)

def trial(words, name):
    rises = {}
    before = peak_memory()
    def done(what):
        nonlocal before
        rises[what] = peak_memory() - before
        before = peak_memory()
    write_blocks(folder / name, names[:words], DIM, blocks(words), dtype="int8")
    done("written")
    vectors = WordVectors.load(folder / name)
    vectors.save(folder / f"{name}-again", dtype="float16")
    done("converted")
    rows = UnitRows(vectors, torch.device("cpu"))
    done("looked through")
    rows.mapped(torch.eye(DIM))
    done("mapped")
    return rises

trial(20_000, "small")
print(json.dumps(trial(WORDS, "large")))
"""


def test_memory_is_bounded_by_blocks_and_the_stored_matrix(tmp_path: Path) -> None:
    """As float32 the matrix is 154 MB, and as int8 38 MB, which counts as the process's once it is read."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True
    )
    rises = json.loads(done.stdout)
    whole, stored, blocks = 154e6, 38e6, 70e6
    assert rises["written"] < blocks
    assert rises["converted"] < stored + blocks
    assert rises["looked through"] < blocks
    assert rises["mapped"] < whole + blocks
