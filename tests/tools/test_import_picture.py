"""The picture of imports: an arc for each import, a box for each layer, and nothing that goes upwards."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    pytest.importorskip("grimp")
    spec = importlib.util.spec_from_file_location("draw_imports", ROOT / "tools" / "draw_imports.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["draw_imports"] = module
    spec.loader.exec_module(module)
    return module


def test_every_import_is_an_arc(tool: ModuleType) -> None:
    packages = [tool.Package(name, 2) for name in ("cli", "space", "a<b")]
    drawn = ElementTree.fromstring(tool.picture(packages, {("cli", "space"): 1, ("cli", "a<b"): 9}))
    arcs = drawn.findall(f"{SVG}path")
    assert sorted(arc[0].text for arc in arcs) == ["cli → a<b: 9", "cli → space: 1"]
    widths = {arc[0].text: float(arc.get("stroke-width", "0")) for arc in arcs}
    assert widths["cli → a<b: 9"] > widths["cli → space: 1"]
    assert [box.text for box in drawn.findall(f"{SVG}text")] == ["cli (2)", "space (2)", "a<b (2)"]


def test_an_import_upwards_is_an_error(tool: ModuleType) -> None:
    packages = [tool.Package(name, 1) for name in ("cli", "space")]
    with pytest.raises(ValueError, match="space imports cli"):
        tool.picture(packages, {("space", "cli"): 1})


def test_the_code_of_today_can_be_drawn(tool: ModuleType) -> None:
    packages, imports = tool.package_imports()
    assert imports["translator", "recipe"] > 0 and ("recipe", "translator") not in imports
    drawn = ElementTree.fromstring(tool.picture(packages, imports))
    assert len(drawn.findall(f"{SVG}path")) == len(imports)


def test_the_picture_in_the_docs_has_every_layer(tool: ModuleType) -> None:
    kept = ElementTree.parse(ROOT / "docs" / "images" / "imports.svg")
    boxes = {(box.text or "").split(" (")[0] for box in kept.iter(f"{SVG}text")}
    assert {name for layer in tool.layers()[:-1] for name in layer} <= boxes
