"""A real Chromium, driven over two pipes by the DevTools protocol; nothing but the standard library.

with Browser() as browser, browser.page("report.html", width=400, dark=True) as page:
    print(page.problems(), page.findings())
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT = 120.0  # seconds, for each answer of the browser
HEIGHT = 900
LOCAL = ("file:", "data:", "blob:", "about:")
CHECKS = Path(__file__).with_name("checks.js")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # a page that asks for another host gets no answer
    "--remote-debugging-pipe",
)
#: Chromium reads commands from descriptor 3 and writes to 4; a shell can only name descriptors below 10
LAUNCHER = """
import fcntl, os, sys
held = [fcntl.fcntl(int(fd), fcntl.F_DUPFD_CLOEXEC, 10) for fd in sys.argv[1:3]]
for fd in sys.argv[1:3]:
    os.close(int(fd))
for fd, place in zip(held, (3, 4)):
    os.dup2(fd, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserError(RuntimeError):
    """The browser did not do what it was asked for."""


class CannotStartError(BrowserError):
    """There is no browser, or it does not start here."""


class Browser:
    """One process of Chromium, with its profile in a temporary folder; both are gone at the end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pages: dict[str, Page] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._buffer = b""
        self._count = 0

    def start(self) -> None:
        path = next(filter(None, map(shutil.which, NAMES)), None)
        if path is None:
            raise CannotStartError(f"no Chromium is installed: {', '.join(NAMES)} are not on the path")
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        log = Path(self._folder.name) / "stderr.txt"
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        command = [sys.executable, "-S", "-c", LAUNCHER, str(theirs_in), str(theirs_out), path, *ARGUMENTS]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, f"--user-data-dir={self._folder.name}/profile", "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(theirs_in, theirs_out),
                start_new_session=True,  # so that its helpers can be ended with it
            )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            self.version = self.command("Browser.getVersion")["product"]
        except (BrowserError, OSError) as error:
            said = log.read_text(errors="replace").strip()[-300:]
            self.close()
            raise CannotStartError(f"{path} does not start: {error}; its last words: {said or 'none'}") from error

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # at first politely: it ends its helpers, too
                os.write(self._to, b'{"id": 0, "method": "Browser.close"}\0')
                self._process.wait(timeout=5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            os.close(self._to)
            os.close(self._from)
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Browser:
        if self._process is None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, path: str | Path, width: int = 1300, dark: bool = False) -> Page:
        """The page once it is loaded and drawn, in a new tab of this width."""
        return Page(self, Path(path).resolve().as_uri(), width, dark)

    def command(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self.wait(lambda: number in self._answers, method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def wait(self, done: Any, what: str) -> None:
        """Read messages until `done()`, for at most `LIMIT` seconds."""
        end = time.monotonic() + LIMIT
        while not done():
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer to {what} within {LIMIT:g} s")
            received = os.read(self._from, 1 << 16)
            if not received:
                raise BrowserError(f"the browser ended during {what}")
            *messages, self._buffer = (self._buffer + received).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                elif message.get("sessionId") in self._pages:
                    self._pages[message["sessionId"]].take(message["method"], message["params"])


class Page:
    """A page in a tab: what went wrong, what the checks find, and what a reader can do."""

    def __init__(self, browser: Browser, url: str, width: int, dark: bool) -> None:
        self._browser, self._problems, self._loaded, self._crashed = browser, [], False, False
        self._target = browser.command("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.command("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        browser._pages[self._session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # nothing moves while it is measured
        self.command("Emulation.setEmulatedMedia", media="screen", features=[scheme, still])
        self.command("Page.bringToFront")  # a tab in the background draws no frames
        self._loaded = False
        failed = self.command("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserError(f"{url}: {failed}")
        browser.wait(lambda: self._loaded or self._crashed, f"loading {url}")
        self.settle()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser._pages.pop(self._session)
        self._browser.command("Target.closeTarget", targetId=self._target)

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.command(method, self._session, **params)

    def take(self, method: str, params: dict[str, Any]) -> None:
        """An event of this page."""
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Inspector.targetCrashed":
            self._crashed = True
            self._problems.append("the page crashed")
        elif method == "Runtime.exceptionThrown":
            self._problems.append(f"uncaught: {_thrown(params['exceptionDetails'])}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            words = (str(one.get("value", one.get("description", one["type"]))) for one in params["args"])
            self._problems.append(f"console: {' '.join(words)}")
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            entry = params["entry"]
            self._problems.append(f"log: {entry['text']} {entry.get('url', '')}".strip())
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(LOCAL):
            self._problems.append(f"request over the network: {params['request']['url']}")

    @contextlib.contextmanager
    def frame(self) -> Iterator[Callable[[str], Any]]:
        """Gives the value of expressions in the one frame of this page, whose origin is its own, as in a notebook."""
        targets = self._browser.command("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "iframe")
        session = self._browser.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        yield lambda script: self.evaluate(script, session)
        self._browser.command("Target.detachFromTarget", sessionId=session)

    def problems(self) -> list[str]:
        """Errors of scripts and of the console, and requests that need a network."""
        self.settle()
        return list(self._problems)

    def settle(self) -> None:
        """Wait for fonts, and for two frames: what was changed is then drawn."""
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
        self.evaluate(f"document.fonts.ready.then(() => {frame})")

    def evaluate(self, script: str, session: str = "") -> Any:
        """The value of an expression, or what its promise gives; in another session than that of the page if given."""
        words = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = self._browser.command("Runtime.evaluate", session or self._session, **words)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{script[:60]!r}: {_thrown(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def findings(self) -> list[str]:
        """What the checks of checks.js find: contrast, cuts, overlaps, controls without a name, raw markup."""
        found = self.evaluate(CHECKS.read_text(encoding="utf-8"))
        return [f"{check}: {one}" for check, each in found.items() for one in each]

    def point(self, selector: str) -> dict[str, float]:
        """Move the pointer to the middle of the first such element, which is scrolled into view."""
        place = self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); if (!one) return null;"
            " one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect();"
            " return box.width * box.height ? {x: box.left + box.width / 2, y: box.top + box.height / 2} : null; })()"
        )
        if place is None:
            raise BrowserError(f"{selector} is not on the page, or has no size")
        self.command("Input.dispatchMouseEvent", type="mouseMoved", **place)
        self.settle()
        return place

    def click(self, selector: str) -> None:
        """Press and release the button of the mouse in the middle of the first such element."""
        place = self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
        self.settle()

    def screenshot(self, path: str | Path) -> None:
        """The whole page, not only what fits the window, as PNG."""
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(image["data"]))


def _thrown(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"]).split("\n")[0]
