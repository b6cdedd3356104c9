"""Debian's Chromium by the WebDriver protocol, with nothing but the standard library."""

import base64
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any
from urllib.request import Request, urlopen

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key under which the protocol names an element."""
DRIVER, BROWSER = which("chromedriver"), which("chromium")
ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--force-device-scale-factor=1", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


class Browser:
    """A session."""

    def __init__(self, base: str, session: str) -> None:
        self._url = f"{base}/session/{session}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """What a command of the protocol answers."""
        return _call(method, f"{self._url}{path}", body)

    def open(self, page: Path) -> None:
        """Load a file."""
        self.call("POST", "/url", {"url": page.as_uri()})

    def run(self, script: str, *arguments: object) -> Any:
        """What a script returns."""
        body = {"script": script, "args": list(arguments)}
        return self.call("POST", "/execute/sync", body)

    def wait(self, script: str, *arguments: object) -> Any:
        """What a script gives to its last argument, a function."""
        body = {"script": script, "args": list(arguments)}
        return self.call("POST", "/execute/async", body)

    def element(self, css: str) -> str:
        """Name of the first element that a selector matches."""
        found = self.call("POST", "/element", {"using": "css selector", "value": css})
        name: str = found[ELEMENT]
        return name

    def click(self, css: str) -> None:
        """Click an element."""
        self.call("POST", f"/element/{self.element(css)}/click", {})

    def press(self, *keys: str) -> None:
        """Press keys one after the other, where the focus is; ``Control+z`` is two at once."""
        actions: list[dict[str, str]] = []
        for key in keys:
            chord = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
            actions += [{"type": "keyDown", "value": part} for part in chord]
            actions += [{"type": "keyUp", "value": part} for part in reversed(chord)]
        source = {"type": "key", "id": "keys", "actions": actions}
        self.call("POST", "/actions", {"actions": [source]})
        self.call("DELETE", "/actions")

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at a point of the window, move in steps, and release at another one."""
        (x0, y0), (x1, y1) = start, end
        steps = [
            {"type": "pointerMove", "x": round(x0 + (x1 - x0) * k / 5), "duration": 20,
             "y": round(y0 + (y1 - y0) * k / 5), "origin": "viewport"}
            for k in range(6)
        ]  # fmt: skip
        down: dict[str, Any] = {"type": "pointerDown", "button": 0}
        actions = [steps[0], down, *steps[1:], {"type": "pointerUp", "button": 0}]
        source = {"type": "pointer", "id": "mouse", "actions": actions}
        self.call("POST", "/actions", {"actions": [source]})
        self.call("DELETE", "/actions")

    def size(self, width: int, height: int, *, mobile: bool = False, dark: bool = False) -> None:
        """Size of the window in pixels, and what the page is told of the device."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.chromium("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.chromium("Emulation.setEmulatedMedia", {"features": [scheme]})

    def chromium(self, command: str, parameters: dict[str, Any]) -> Any:
        """What a command of Chromium's own protocol answers."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Save a picture of the window, or of the whole page."""
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            page = self.chromium("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "scale": 1,
                               "width": page["width"], "height": page["height"]}  # fmt: skip
        image = self.chromium("Page.captureScreenshot", options)["data"]
        file.write_bytes(base64.b64decode(image))

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What the console said ("browser") or the network did ("performance") since last time."""
        entries: list[dict[str, Any]] = self.call("POST", "/se/log", {"type": kind})
        return entries

    def requests(self) -> list[str]:
        """Addresses that were asked for since last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


KEYS = {
    "Control": "\ue009", "Shift": "\ue008", "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c",
    "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
}  # fmt: skip


@contextmanager
def browser() -> Iterator[Browser]:
    """A session that ends with the context."""
    assert DRIVER is not None
    assert BROWSER is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(
        [DRIVER, f"--port={port}", "--log-level=OFF"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"http://127.0.0.1:{port}"
    session = ""
    try:
        _wait_for(base)
        options = {"binary": BROWSER, "args": list(ARGUMENTS)}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = _call("POST", f"{base}/session", {"capabilities": {"alwaysMatch": wanted}})
        session = answer["sessionId"]
        yield Browser(base, session)
    finally:
        if session:
            _call("DELETE", f"{base}/session/{session}", None)
        driver.terminate()
        driver.wait(timeout=60)


def _wait_for(base: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if _call("GET", f"{base}/status", None)["ready"]:
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the driver of Chromium does not answer")


def _call(method: str, url: str, body: dict[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=180) as response:
        return json.load(response)["value"]
