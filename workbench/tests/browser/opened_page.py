"""The workbench's page in a real Chromium, with the few things that tests do to it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

Found = TypeVar("Found")
_PATIENCE_S = 60.0
_NOT_YET = (ElementClickInterceptedException, StaleElementReferenceException, StopIteration)
_AXE = Path(__file__).parent / "vendor" / "axe.min.js"


def chromium(downloads: Path, binary: str, driver: str) -> webdriver.Chrome:
    """A headless Chromium that keeps its console and puts downloads into a folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    started.set_script_timeout(_PATIENCE_S)
    return started


class OpenedPage:
    """One page of one server; every wait ends with an error that says what was waited for."""

    def __init__(self, driver: webdriver.Chrome, address: str, token: str, downloads: Path) -> None:
        self.driver, self.address, self.downloads = driver, address, downloads
        self._expected: list[str] = []
        driver.get("about:blank")
        driver.get(f"{address}/?token={token}")
        self.until(lambda: self.all("main h1, main [role=alert]"), "the first view")

    # Looking

    def until(self, condition: Callable[[], Found], awaited: str, patience: float = _PATIENCE_S) -> Found:
        """Wait for a condition and give what it gave."""
        end = time.monotonic() + patience
        while True:
            with suppress(*_NOT_YET):
                found = condition()
                if found:
                    return found
            if time.monotonic() > end:
                text = self.driver.find_element(By.TAG_NAME, "body").text[:1500]
                raise AssertionError(f"waited in vain for {awaited}; the page shows:\n{text}")
            time.sleep(0.03)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first visible element, waited for."""
        return self.until(
            lambda: next((each for each in self.all(selector) if each.is_displayed()), None), selector
        )

    def text(self, selector: str) -> str:
        """The text of the first visible element, also of parts that only screen readers get."""
        return self.until(lambda: [str(self.one(selector).get_attribute("textContent"))], selector)[0]

    def now(self, selector: str) -> str | None:
        """The text of an element at this moment, or None if there is none."""
        found: str | None = self.run("return document.querySelector(arguments[0])?.textContent", selector)
        return found

    def sees(self, selector: str, part: str) -> None:
        """Wait until an element's text contains a part."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        self.until(
            lambda: any(part in text for text in self.run(script, selector)), f"'{part}' in {selector}"
        )

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def api(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """What the server answers to the page itself: status and JSON."""
        script = (
            "const [path, method, body, done] = arguments;"
            "fetch('/api/' + path, {method, headers: body ? {'Content-Type': 'application/json'} : {},"
            " body: body ? JSON.stringify(body) : undefined})"
            ".then(async (r) => done([r.status, await r.json()]), (e) => done([0, String(e)]));"
        )
        status, answer = self.driver.execute_async_script(script, path, method, body)
        assert 200 <= status < 300, (path, status, answer)
        return answer

    # Acting

    def go(self, link: str) -> None:
        """Follow a link as a bookmark would be: a new load of the page."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}/#/{link}")
        view = link.partition("?")[0]
        self.one(f".view[data-view={view}] h1")

    def keys(self, *pressed: str) -> None:
        """Press keys on whatever has the focus; nothing else is touched."""
        for key in pressed:
            ActionChains(self.driver).send_keys(key).perform()

    def click(self, selector: str, words: str = "") -> None:
        """Click the first visible element that holds some words, once nothing lies over it."""

        def clicked() -> bool:
            element = next(each for each in self.all(selector) if each.is_displayed() and words in each.text)
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        self.until(clicked, f"{selector} to click")

    def press(self, selector: str, key: str = Keys.ENTER) -> None:
        """Bring the focus to an element with Tab alone, and press a key on it."""
        self.one(selector)
        for _ in range(150):
            if self.run("return document.activeElement.matches(arguments[0])", selector):
                self.keys(key)
                return
            self.keys(Keys.TAB)
        raise AssertionError(f"Tab does not reach {selector}")

    def write(self, selector: str, text: str) -> None:
        """Put a text in place of what a field holds, by typing."""
        field = self.one(selector)
        field.click()
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text or Keys.BACKSPACE)

    def choose(self, selector: str, value: str) -> None:
        self.run(
            "const [field, value] = arguments; field.value = value;"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            self.one(selector),
            value,
        )

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Make the system prefer light or dark."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def downloaded(self, act: Callable[[], None]) -> Path:
        """The file that an action downloads."""
        before = set(self.downloads.iterdir())
        act()

        def new() -> Path | None:
            files = [path for path in self.downloads.iterdir() if path not in before]
            # Chromium writes under a hidden name or with the suffix .crdownload, and renames in the end.
            unfinished = [path for path in files if path.name.startswith(".") or path.suffix == ".crdownload"]
            return None if unfinished or not files else files[0]

        return self.until(new, "a downloaded file")  # type: ignore[return-value]

    # Judging

    def expect_failed_request(self, status: int) -> None:
        """The test provokes this answer; Chromium writes it to the console as an error."""
        self._expected.append(f"the server responded with a status of {status}")

    def console_errors(self) -> list[str]:
        """Errors and warnings of the console since the last call, less those that a test provokes."""
        entries = [
            entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]
        return [e["message"] for e in entries if not any(part in e["message"] for part in self._expected)]

    def violations(self) -> list[str]:
        """What axe-core finds serious or critical on the page as it stands."""
        self.run(_AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script("axe.run(document).then(arguments[0])")
        return [
            f"{each['impact']} {each['id']}: {json.dumps([node['html'][:200] for node in each['nodes'][:3]])}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
