"""A tiny real model, the real server in a process of its own, and Chromium."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hostile_words import HOSTILE
from running_server import TOKEN, Server, serve

from bilex.aligners import get_method
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from opened_page import OpenedPage
    from selenium.webdriver import Chrome

HERE = Path(__file__).parent
WORDS = 2000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_programs() -> tuple[str, str]:
    """Chromium and its driver; without them, one clear line in the summary."""
    for module in ("selenium", "fastapi", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver on this machine")
    return str(binary), str(driver)


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver(browser_programs: tuple[str, str], downloads: Path) -> Iterator[Chrome]:
    from opened_page import chromium

    started = chromium(downloads, *browser_programs)
    yield started
    started.quit()


def _slice(language: str, words: list[str]) -> WordVectors:
    """The most frequent words of the sample, and words that nobody would want to meet."""
    vectors = WordVectors.load(sample_path() / language)
    numbers = np.random.default_rng(len(language))
    extra = numbers.normal(size=(len(words), vectors.vectors.shape[1])).astype(np.float32)
    first = WORDS - len(words)
    rows = np.vstack([np.asarray(vectors.vectors[:first], dtype=np.float32), extra])
    return WordVectors([*vectors.index_to_key[:first], *words], rows)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, browser_programs: tuple[str, str]) -> Path:
    """English to Finnish on a slice of the sample, by `procrustes`, with hostile words on both sides."""
    source, target = (_slice(language, list(HOSTILE.values())) for language in ("en", "fi"))
    pairs = Lexicon.load(sample_path() / "seeds.tsv").pairs
    known = [pair for pair in pairs if pair[0] in source.key_to_index and pair[1] in target.key_to_index]
    path = tmp_path_factory.mktemp("model") / "en-fi"
    aligner = get_method("procrustes")(device="cpu")
    languages = ("en", "fi")
    Translator(aligner).fit(source, target, Lexicon(known), lowercase=False, languages=languages).save(path)
    return path


@pytest.fixture(scope="module")
def server(fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a copy of the model, so that every module begins without decisions."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(fitted, folder / "en-fi")
    with serve([str(folder / "en-fi")], folder) as started:
        yield started


@pytest.fixture(scope="module")
def empty_server(
    tmp_path_factory: pytest.TempPathFactory, browser_programs: tuple[str, str]
) -> Iterator[Server]:
    """A server without a model, with a folder to choose files from."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "data" / "deeper").mkdir(parents=True)
    with serve(["--folder", str(folder / "data")], folder) as started:
        yield started


@pytest.fixture
def open_page(driver: Chrome, downloads: Path) -> Iterator[Callable[[Server], OpenedPage]]:
    """Opens a server's page in a fresh state; at the end the console must be empty."""
    from opened_page import OpenedPage

    opened: list[OpenedPage] = []

    def open_(server: Server) -> OpenedPage:
        driver.get("about:blank")  # else the page before would go on asking, without its cookie
        driver.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": server.address, "storageTypes": "all"}
        )
        driver.get_log("browser")
        page = OpenedPage(driver, server.address, TOKEN, downloads)
        page.prefer("light")
        page.resize(1200, 900)
        opened.append(page)
        return page

    yield open_
    for page in opened:
        assert page.console_errors() == []


@pytest.fixture
def page(server: Server, open_page: Callable[[Server], OpenedPage]) -> OpenedPage:
    return open_page(server)


@pytest.fixture
def reviewer(page: OpenedPage) -> Callable[[str], None]:
    """Sets who reviews, as the form would."""
    return lambda name: page.run("localStorage.setItem('bilex-reviewer', arguments[0])", name)
