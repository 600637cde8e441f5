"""The page in a real browser: no errors, every figure drawn, no request, and no sideways scrolling on a phone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from forgetting.report import load_report

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; the page is checked as text only")

PROBE = """
<script>
addEventListener("error", event => { (window.failures ||= []).push(event.message); });
addEventListener("load", () => {
  const figures = [...document.querySelectorAll("figure")].map(figure => ({
    id: figure.id,
    marks: [...figure.querySelectorAll("svg path, svg rect, svg circle")].filter(mark => {
      const box = mark.getBBox();
      return box.width + box.height > 0;
    }).length,
    width: Math.min(...[...figure.querySelectorAll("svg.plot")].map(svg => svg.getBoundingClientRect().width)),
    height: Math.min(...[...figure.querySelectorAll("svg.plot")].map(svg => svg.getBoundingClientRect().height)),
  }));
  const controls = document.querySelector(".controls");
  const slider = controls.querySelector("input");
  slider.value = 3;
  slider.dispatchEvent(new Event("input"));
  const said = controls.querySelector("output").textContent;
  document.getElementById("theme").click();
  const curves = document.querySelector("svg.curves"), box = curves.getBoundingClientRect();
  const unit = box.width / curves.viewBox.baseVal.width;
  const first = JSON.parse(document.querySelector("script#data").textContent)[curves.dataset.key].points[0];
  const [x, y] = first.at[0];
  curves.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + x * unit, clientY: box.top + y * unit}));
  const tip = document.querySelector("div#tip").textContent;
  curves.querySelector(".key").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  parent.postMessage(JSON.stringify({
    figures,
    said,
    tip,
    expected: `${first.name}: ${first.y[0]} at ${first.x[0]}`,
    off: curves.querySelectorAll(".series.off").length,
    later: document.querySelectorAll(".later").length,
    theme: document.documentElement.dataset.theme,
    requests: performance.getEntriesByType("resource").map(entry => entry.name),
    sideways: document.documentElement.scrollWidth - innerWidth,
    inner: innerWidth,
    failures: window.failures || [],
  }), "*");
});
</script>
"""
#: a browser window has a least width; a frame has none
FRAME = """<!doctype html><link rel="icon" href="data:,"><pre id="probe"></pre>
<script>addEventListener("message", event => { document.getElementById("probe").textContent = event.data; });</script>
<iframe src="{page}" width="{width}" height="900" style="border:0"></iframe>
"""


def look(folder: Path, width: int, *more: str) -> tuple[dict, str]:
    """What the page finds out about itself, and what the browser logs."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    inner, page = folder.parent / "inner.html", folder.parent / "outer.html"
    inner.write_text(text.replace("</main>", "</main>" + PROBE), encoding="utf-8")
    page.write_text(FRAME.replace("{page}", inner.name).replace("{width}", str(width)), encoding="utf-8")
    done = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            f"--user-data-dir={folder.parent / 'profile'}", "--window-size=1400,1000", "--virtual-time-budget=2000",
            *more, "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, encoding="utf-8", timeout=300, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found
    return json.loads(html.unescape(found[1])), done.stderr


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_the_page_draws_every_figure_without_errors_or_requests(built, width, dark):
    folder = built[0]
    report = load_report(folder)
    seen, log = look(folder, width, *(["--blink-settings=preferredColorScheme=0"] if dark else []))
    assert "CONSOLE" not in log
    assert seen["failures"] == []
    assert seen["requests"] == []
    figures = {item.key for item in report.items() if item.kind != "table"}
    assert {one["id"] for one in seen["figures"]} == {f"fig-{key}" for key in figures}
    for one in seen["figures"]:
        assert one["marks"] >= 8, one
        assert one["width"] >= 280, one
        assert one["height"] >= 180, one
    assert seen["inner"] == width
    assert seen["sideways"] <= 0
    assert seen["tip"].startswith(seen["expected"])
    assert seen["off"] >= 1
    assert seen["said"].startswith("step 3 of 18: task ")
    assert seen["later"] == 2 * 2 * 15  # moves and stops, in two panels, after step 3
    assert seen["theme"] == ("light" if dark else "dark")
