"""A headless Chromium that may not reach anything, and what it logged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

selenium = pytest.importorskip("selenium", reason="the browser tests need selenium")

from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402


@pytest.fixture(scope="session")
def chromium() -> Iterator[webdriver.Chrome]:
    """Debian's chromium and its driver; skip where they are not installed."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs chromium and chromedriver (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--force-prefers-reduced-motion",
        "--window-size=1300,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


class Page:
    """A report in the browser."""

    def __init__(self, driver: webdriver.Chrome, file: Path) -> None:
        self.driver = driver
        for kind in ("browser", "performance"):
            driver.get_log(kind)  # what other pages left
        driver.get(file.as_uri())
        self.until(lambda: self.all("#items .browser:not([hidden]), #items .empty"))

    def element(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, condition: Callable[[], object], seconds: float = 20) -> None:
        """Wait for what the page does in its own time; what it draws anew meanwhile is found again."""
        moved = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, seconds, 0.05, ignored_exceptions=moved)
        wait.until(lambda _: condition())

    def script(self, text: str) -> Any:
        return self.driver.execute_script(text)

    def choose(self, field: str, value: str) -> None:
        """Choose an option of a filter by its beginning."""
        options = self.all(f"#f-{field} option")
        next(option for option in options if option.text.startswith(value)).click()

    def wait_for_count(self, text: str) -> None:
        """Wait until the page shows so many items."""
        self.until(lambda: self.element("#count").text == text)

    def rows(self) -> list[str]:
        """The ids of the items in the list, as they are drawn now."""
        return [row.text.split("\n")[1] for row in self.all(".row")]

    def complaints(self) -> list[str]:
        """The lines of the browser's console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses requested since the page was opened."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture
def open_page(chromium: webdriver.Chrome) -> Callable[[Path], Page]:
    """Open a report's file."""
    return lambda file: Page(chromium, file)
