"""Picture of the HTML report for the README, light and dark: a real run of the demo model.

    python scripts/report_picture.py              evaluate the demo model, then take the pictures
    python scripts/report_picture.py --run RUN    take them from a stored run

Needs the extras ``hf`` and ``report``, the demo model, selenium, and Chromium with its driver
(Debian: ``chromium chromium-driver``). Writes ``docs/images/report-light.webp`` and
``report-dark.webp``, under 300 kB together.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

REPOSITORY = Path(__file__).resolve().parents[1]
IMAGES = REPOSITORY / "docs" / "images"
WIDTH, HEIGHT = 1280, 800  # CSS pixels
SCALE = 1.5  # device pixels per CSS pixel
QUALITY = 80  # of WebP, 0 to 100
MAX_BYTES = 300_000  # both pictures together


def evaluate(folder: Path) -> Path:
    """Evaluate the packaged benchmark with the demo model; return the run folder."""
    command = [sys.executable, "-m", "pytest", "benchmarks/test_starter.py", "--llm-model", "demo"]
    subprocess.run([*command, "--llm-runs", str(folder)], cwd=REPOSITORY, check=True)
    (run,) = folder.glob("*/")
    return run


def write_report(run: Path, file: Path) -> None:
    """Write the HTML report of a stored run."""
    code = "import sys; from pytest_llmeval.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "report", str(run), "--out", str(file)]
    subprocess.run(command, cwd=REPOSITORY, check=True)


def take_picture(driver: webdriver.Chrome, file: Path, scheme: str) -> bytes:
    """Render the top of a page in a colour scheme (light or dark); return a WebP image."""
    metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SCALE, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(file.as_uri())
    driver.execute_script("return document.fonts.ready")
    shot = {"format": "webp", "quality": QUALITY}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])


def open_browser() -> webdriver.Chrome:
    """Start a headless Chromium."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        sys.exit("chromium or chromedriver is not on PATH (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(driver))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, metavar="RUN", help="run folder to show")
    parser.add_argument(
        "--out", type=Path, default=IMAGES, metavar="DIR", help="default: %(default)s"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.html"
        write_report(arguments.run or evaluate(Path(temporary) / "runs"), report)
        driver = open_browser()
        try:
            pictures = {name: take_picture(driver, report, name) for name in ("light", "dark")}
        finally:
            driver.quit()
    size = sum(map(len, pictures.values()))
    if size > MAX_BYTES:
        sys.exit(f"the pictures have {size:,} bytes together, more than {MAX_BYTES:,}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        file = arguments.out / f"report-{name}.webp"
        file.write_bytes(picture)
        print(f"wrote {file} ({len(picture):,} bytes)")


if __name__ == "__main__":
    main()
