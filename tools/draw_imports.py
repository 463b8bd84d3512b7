"""Draw which package of bilex imports which, from the code as it is: docs/images/imports.svg.

    python tools/draw_imports.py [-o FILE]

The order of the packages is that of the import-linter contract in pyproject.toml, lowest at the bottom. An
arc goes from each package to what it imports, thicker for more modules. Modules of the lowest layer (errors,
files, progress, ...) may be imported by all, so they are one box without arcs.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "images" / "imports.svg"
_ROW, _BOX_WIDTH, _BOX_HEIGHT, _LEFT, _TOP = 46, 210, 32, 20, 20
_BEND = 34  # how far an arc swings out for each row that it passes
_COLOURS = ["#4269d0", "#c2571a", "#2e8b57", "#b03a6f", "#7a5cc2", "#8a6d1f", "#207f8c", "#5b5b5b"]


@dataclass(frozen=True)
class Package:
    """One box of the picture.

    Args:
        name: What stands in the box.
        modules: How many modules it has.
    """

    name: str
    modules: int


def layers() -> list[list[str]]:
    """The layers of the contract, the highest first; packages side by side in one layer are one list."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in content["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [[name.strip() for name in layer.replace("|", ":").split(":")] for layer in contract["layers"]]


def package_imports() -> tuple[list[Package], Counter[tuple[str, str]]]:
    """The packages from the top down, and how many modules of one import another."""
    graph = grimp.build_graph("bilex", "bilex_bench", exclude_type_checking_imports=True, cache_dir=None)
    *upper, lowest = layers()
    names = ["bilex_bench", *(name for layer in upper for name in layer)]

    def home(module: str) -> str | None:
        first, *rest = module.split(".")
        name = first if first == "bilex_bench" else rest[0] if rest else None
        return name if name in names else None

    modules = Counter(home(module) for module in graph.modules)
    imports: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        importer = home(module)
        imported = {home(other) for other in graph.find_modules_directly_imported_by(module)}
        imports.update((importer, name) for name in imported if importer and name and name != importer)
    base = Package(f"base: {len(lowest)} modules, imported by all", len(lowest))
    return [*(Package(name, modules[name]) for name in names), base], imports


def picture(packages: Sequence[Package], imports: Mapping[tuple[str, str], int]) -> str:
    """The SVG: a box for each package, an arc for each import.

    Args:
        packages: From the top down.
        imports: How many modules of the first package import the second.

    Raises:
        ValueError: A package imports one that stands above it, so that the arc would go up.
    """
    rows = {package.name: row for row, package in enumerate(packages)}
    longest = max((abs(rows[low] - rows[high]) for high, low in imports), default=0)
    width = _LEFT + _BOX_WIDTH + int(0.75 * _BEND * longest) + 40
    height = _TOP + len(packages) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="13">',
        "<title>Which package imports which</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for (high, low), count in sorted(imports.items(), key=lambda item: rows[item[0][0]]):
        if rows[high] > rows[low]:
            raise ValueError(f"{high} imports {low}, which stands above it")
        parts.append(_arc(high, low, count, rows))
    parts += [_box(package, rows[package.name]) for package in packages]
    return "\n".join([*parts, "</svg>", ""])


def _arc(high: str, low: str, count: int, rows: Mapping[str, int]) -> str:
    """An arc on the right side, from an importing package down to an imported one."""
    right = _LEFT + _BOX_WIDTH
    middle = _TOP + _BOX_HEIGHT / 2
    start, end = middle + rows[high] * _ROW + 5, middle + rows[low] * _ROW - 5
    bend = right + _BEND * (rows[low] - rows[high])
    colour = _COLOURS[rows[high] % len(_COLOURS)]
    return (
        f'<path d="M{right} {start:g} C{bend} {start:g} {bend} {end:g} {right} {end:g}" fill="none" '
        f'stroke="{colour}" stroke-width="{0.8 + 0.6 * math.log2(count):.1f}" stroke-opacity="0.75">'
        f"<title>{escape(high)} → {escape(low)}: {count}</title></path>"
    )


def _box(package: Package, row: int) -> str:
    """A box with the package's name and its number of modules."""
    top = _TOP + row * _ROW
    colour = _COLOURS[row % len(_COLOURS)]
    count = "" if package.name.startswith("base") else f" ({package.modules})"
    return (
        f'<rect x="{_LEFT}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="4" fill="#f6f6f6" '
        f'stroke="{colour}" stroke-width="1.5"/>\n'
        f'<text x="{_LEFT + 10}" y="{top + 21}" fill="#222222">{escape(package.name + count)}</text>'
    )


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    path = parser.parse_args().output
    path.write_text(picture(*package_imports()), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
