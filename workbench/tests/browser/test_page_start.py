"""Start from nothing: the sample, files of the allowed folder, uploads in pieces, a working model."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from opened_page import OpenedPage
from running_server import Server

from planted import planted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(empty_server: Server) -> Server:
    """Vectors of two planted languages: in the server's folder, and beside it to upload."""
    made = planted(400, 16, 0.3)
    data = empty_server.folder / "data"
    made.source.save(data / "deeper" / "source.vec")
    made.target.save(empty_server.folder / "target.vec")
    made.pairs(0, 200).save(empty_server.folder / "seeds.tsv")
    return empty_server


def test_a_fit_of_the_sample_is_cancelled(world: Server, open_page: Callable[[Server], OpenedPage]) -> None:
    page = open_page(world)
    page.sees("h1", "Start")
    page.press("#sample-fit")
    page.sees("#job-heading", "Fitting the model")
    page.press("#job-cancel")
    page.one("#sample-fit")
    assert page.api("job")["job"]["state"] == "cancelled"
    assert page.api("model")["state"] == "none"


def in_small_pieces(page: OpenedPage) -> None:
    """Uploads go in pieces of 10,000 bytes, and the connection is lost once."""
    page.run(
        "const real = window.fetch; window.pieces = 0;"
        "window.fetch = async (path, given) => {"
        " if (given.method === 'PUT') window.pieces += 1;"
        " if (given.method === 'PUT' && window.pieces === 2) throw new TypeError('lost');"
        " const answer = await real(path, given);"
        " if (path !== '/api/setup') return answer;"
        " return new Response(JSON.stringify({...await answer.json(), piece: 10000}), {status: 200}); };"
        "location.hash = '#/start'"
    )


def test_a_model_is_fitted_from_files(world: Server, open_page: Callable[[Server], OpenedPage]) -> None:
    page = open_page(world)
    page.sees("h1", "Start")
    assert not page.all("nav a")
    in_small_pieces(page)
    page.sees("h1", "Start")
    page.click("#fit-go")
    assert (page.api("job")["job"] or {"state": "none"})["state"] != "running"
    page.write("#fit-source-language", "English")
    page.write("#fit-target-language", "Finnish")
    assert page.one("#fit-name").get_attribute("value") == "en-fi"
    page.sees(".file-choice legend", "English words")
    page.write("#fit-name", "planted")
    page.click("#fit-go")
    page.sees("[role=alert]", "both languages")
    _, second, third = page.all(".file-choice")
    page.press(".browse")
    page.click(".file-browser button", "deeper")
    page.click(".file-browser button", "source.vec")
    page.sees(".chosen-file", "Chosen: source.vec")
    second.find_element("css selector", "input[type=file]").send_keys(str(world.folder / "target.vec"))
    page.sees(".chosen-file", "Chosen: target.vec")
    size = (world.folder / "target.vec").stat().st_size
    assert page.run("return window.pieces") == math.ceil(size / 10_000) + 1
    third.find_element("css selector", "input[type=file]").send_keys(str(world.folder / "seeds.tsv"))
    page.sees(".chosen-file", "Chosen: seeds.tsv")
    assert not page.one("#fit-advanced").get_attribute("open")
    page.press("#fit-advanced summary")
    page.choose("#fit-method", "procrustes")
    page.sees("#fit-advanced .hint", "rotation")
    page.press("#fit-go")
    page.one("#word")
    page.sees("#model-name", "planted")
    page.go("table")
    page.sees("#turn", "English → Finnish")
    source = planted(400, 16, 0.3).source.index_to_key[300]
    page.go(f"translate?word={source}")
    page.until(lambda: page.all(".translation"), "translations")
    right = planted(400, 16, 0.3).target.index_to_key[300]
    assert right in page.text(".translations")
