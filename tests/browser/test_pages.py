"""The report, an audit and cells of a notebook in a real Chromium; before them, the checks on planted faults.

Skipped where no Chromium is installed, or where it cannot start.
"""

import numpy as np
import pytest

import forgetting as fg
from forgetting.report import Settings, build_report, default_problem
from forgetting.report.html import to_html

WIDTHS = (1300, 400)
SCHEMES = {"light": False, "dark": True}

everywhere = pytest.mark.parametrize(
    ("width", "dark"),
    [pytest.param(width, dark, id=f"{width}-{name}") for width in WIDTHS for name, dark in SCHEMES.items()],
)


def assert_readable(page):
    found = [*page.problems(), *page.findings()]
    assert not found, "\n".join(["", *found])


def written(folder, body, style=""):
    path = folder / "page.html"
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">'
    path.write_text(f"{head}<style>{style}</style></head><body>{body}</body></html>", encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------- the checks, on made pages

CLEAN = """
<h1>Title</h1><p>Text with <a href="#x">a link</a>, x<sup>2</sup><sub>0</sub> and <code>x_{i}</code>.</p>
<button type="button">Play</button> <button disabled style="color:#ddd;background:#fff">Off</button>
<label>k <input type="range"></label> <input type="text" aria-label="word" value="word">
<div style="overflow-x:auto"><table><tr><td style="white-space:nowrap">{words}</td></tr></table></div>
<div style="width:90px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap">{words}</div>
<p style="background:#000;color:#fff">inverse <span style="opacity:.9">text</span></p>
<p style="font-size:24px;color:#8a8a8a">large text may be lighter</p>
<p hidden style="color:#fff">hidden</p><p aria-hidden="true" style="color:#eee">decoration</p>
<p style="position:absolute;width:1px;height:1px;overflow:hidden;white-space:nowrap">for screen readers</p>
<a href="#x" style="position:fixed;top:-60px;color:#fff">skip</a>
<details><summary>More</summary><p style="color:#fff">closed</p></details>
<svg viewBox="0 0 300 100" width="300"><rect x="100" width="80" height="40" fill="#000"/>
<text x="110" y="25" fill="#fff">on black</text><g font-size="10">
<text x="20" y="80" transform="rotate(-45 20 80)">a long rotated label</text>
<text x="36" y="80" transform="rotate(-45 36 80)">and its neighbour</text></g></svg>
""".replace("{words}", "many words " * 40)  # fmt: skip
FAULTS = {
    "grey on white": ('<p style="color:#999">grey</p>', 'contrast: html > body > p "grey" #999999 on #ffffff is 2.85'),
    "large but too light": ('<p style="font-size:24px;color:#999">grey</p>', "is 2.85, needs 3"),
    "faded by an ancestor": ('<div style="opacity:.4"><p>faded</p></div>', 'div > p "faded" #999999 on #ffffff'),
    "translucent background": (
        '<div style="background:#000"><p style="background:rgb(255 255 255/.4);color:#000">p</p></div>',
        "#000000 on #666666 is 3.66",
    ),
    "colour of another space": ('<p style="color:color(srgb .6 .6 .6)">grey</p>', "#999999 on #ffffff is 2.85"),
    "text of a drawing": ('<svg><text y="20" fill="#999">drawn</text></svg>', 'svg > text "drawn" #999999'),
    "text on a shape": (
        '<svg><rect width="90" height="40" fill="#333"/><text x="9" y="25">label</text></svg>',
        '"label" #000000 on #333333',
    ),
    "placeholder": ('<input aria-label="a" placeholder="word" style="background:#777">', 'input "word"'),
    "page wider than the window": ('<div style="width:600px">wide</div>', "cut: the page is 608 px wide"),
    "word wider than the window": ("w" * 200, "cut: html > body"),
    "line in a box that clips": (
        '<div id="box" style="overflow:hidden;width:90px;white-space:nowrap">more than fits into this box</div>',
        "sticks out of div#box by",
    ),
    "label outside of its drawing": (
        '<svg id="plot" width="100" height="50"><text x="80" y="20">longer label</text></svg>',
        "sticks out of svg#plot by",
    ),
    "label below its drawing": ('<svg id="plot" width="99" height="20"><text y="26">g</text></svg>', "out of svg#plot"),
    "scroll container out of the window": (
        '<div style="position:absolute;right:-90px;width:120px;overflow-x:auto">scrolls</div>',
        "sticks out of the window by",
    ),
    "overlapping lines": ('<p>first line</p><p style="margin-top:-30px">second</p>', '"second" overlap by'),
    "overlapping labels": (
        '<svg><text x="10" y="20">one label</text><text x="40" y="22">another</text></svg>',
        '"one label" and html > body > svg > text "another" overlap by',
    ),
    "overlapping rotated labels": (
        '<svg width="300" height="200"><text x="20" y="150" transform="rotate(-45 20 150)">a long rotated label</text>'
        '<text x="26" y="150" transform="rotate(-45 26 150)">and its neighbour</text></svg>',
        "overlap by",
    ),
    "text over a control": ('<input aria-label="a"><p style="margin-top:-20px">text</p>', "overlap by"),
    "button without a name": ('<button type="button" id="b"></button>', "name: button#b has no name"),
    "link without a name": ('<a href="#x" id="a"><svg width="9" height="9"></svg></a>', "name: a#a has no name"),
    "drawn button without a name": ('<svg><g role="button" id="g"><path d="M0 0h9"/></g></svg>', "name: g#g has"),
    "formula as it was written": ("<svg><text y='20'>$\\mathdefault{10^{1}}$</text></svg>", "shows its source"),
}  # fmt: skip
PROBLEMS = {
    "error on the console": ("<script>console.error('broken', 3)</script>", "console: broken 3"),
    "exception": ("<script>null.x</script>", "uncaught: TypeError: Cannot read properties of null"),
    "rejected promise": ("<script>Promise.reject(new Error('no'))</script>", "uncaught: Error: no"),
    "image of another host": ('<img alt="" src="https://example.invalid/a.png">', "network: https://example.invalid/a.png"),
    "script of another host": ('<script src="http://example.invalid/a.js"></script>', "http://example.invalid/a.js"),
    "file that is missing": ('<img alt="" src="missing.png">', "ERR_FILE_NOT_FOUND"),
}  # fmt: skip


@everywhere
def test_a_clean_page_has_no_findings(browser, tmp_path, width, dark):
    with browser.page(written(tmp_path, CLEAN), width, dark) as page:
        assert_readable(page)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_nothing_else(browser, tmp_path, fault):
    body, expected = FAULTS[fault]
    with browser.page(written(tmp_path, body), width=400) as page:
        assert page.problems() == []
        found = page.findings()
    assert any(expected in one for one in found), found
    kinds = {one.split(":")[0] for one in found}
    assert len(kinds) == 1, found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_planted_problem_is_found(browser, tmp_path, problem):
    body, expected = PROBLEMS[problem]
    with browser.page(written(tmp_path, body)) as page:
        found = page.problems()
    assert any(expected in one for one in found), found


def test_a_fault_of_one_colour_scheme_is_found_in_that_one(browser, tmp_path):
    style = ":root{color-scheme:light dark}p{color:#555}"  # on white, or on what the browser takes for dark pages
    with browser.page(written(tmp_path, "<p>text</p>", style), dark=False) as page:
        assert page.findings() == []
    with browser.page(written(tmp_path, "<p>text</p>", style), dark=True) as page:
        assert [one.split(":")[0] for one in page.findings()] == ["contrast"]


def test_a_fault_of_narrow_windows_is_found_in_those(browser, tmp_path):
    path = written(tmp_path, '<div style="width:600px">text</div>')
    with browser.page(path, width=1300) as page:
        assert page.findings() == []
    with browser.page(path, width=400) as page:
        assert len(page.findings()) == 1


def test_clicks_reach_the_page_and_its_errors_are_kept(browser, tmp_path):
    body = "<button onclick=\"this.textContent = 'pressed'; undefined_name()\">press</button>"
    with browser.page(written(tmp_path, body)) as page:
        assert page.problems() == []
        page.click("button")
        assert page.evaluate("document.querySelector('button').textContent") == "pressed"
        assert page.problems() == ["uncaught: ReferenceError: undefined_name is not defined"]


# ------------------------------------------------------------------------------------------------ pages of this library


@pytest.fixture(scope="module")
def pages(tmp_path_factory, browser):
    """Small, but with every section."""
    folder = tmp_path_factory.mktemp("pages")
    report = build_report(Settings(default_problem(), k=24, points=6, runs=20, hunt=1, eps=(3.0, 2.0)))
    assert not [section.key for section in report.sections if section.missing]
    audit = fg.audit(fg.families.gaussian(T=6, d=9, rank=2, seed=4))
    rng = np.random.default_rng(0)
    splits = fg.ClassSplits(rng.standard_normal((60, 20)), 10 * ["ant", "bee", "cat", "dog", "eel", "fox"], tasks=3)
    orders = fg.audit(splits, order=splits.class_names, patience=0)
    paths = {name: folder / f"{name}.html" for name in ("report", "audit", "orders")}
    paths["report"].write_text(to_html(report), encoding="utf-8")
    paths["audit"].write_text(to_html(audit.to_report()), encoding="utf-8")
    paths["orders"].write_text(orders.to_html(), encoding="utf-8")
    learned = [[0, 1, 2], [0, 1, 2], [2, 1, 0], [2, 1, 0]]
    tables = [np.tri(3)[:, order] * 0.7 + 0.1 + 0.1 * rng.random((3, 3)) for order in learned]
    paths["accuracies"] = folder / "accuracies.html"
    fg.audit(fg.AccuracyMatrices(tables, learned)).write_page(paths["accuracies"])
    return paths


@pytest.mark.parametrize("name", ["report", "audit", "orders", "accuracies"])
@everywhere
def test_a_page_can_be_read_at_every_width_and_in_both_schemes(browser, pages, name, width, dark):
    with browser.page(pages[name], width, dark) as page:
        assert_readable(page)


@pytest.mark.parametrize("dark", SCHEMES.values(), ids=SCHEMES)
def test_the_button_changes_to_the_other_scheme_and_back(browser, pages, dark):
    ground = "getComputedStyle(document.body).backgroundColor"
    with browser.page(pages["audit"], 1300, not dark) as page:
        other = page.evaluate(ground)
    with browser.page(pages["audit"], 1300, dark) as page:
        own = page.evaluate(ground)
        page.click("#theme")
        assert page.evaluate(ground) == other != own
        page.click("#theme")
        assert page.evaluate(ground) == own


@pytest.mark.parametrize("width", WIDTHS)
def test_legends_hide_curves_and_show_them_again(browser, pages, width):
    key = "#fig-forgetting .key[role=button]"
    shown = "document.querySelectorAll('#fig-forgetting .series:not(.off)').length"
    with browser.page(pages["report"], width) as page:
        before = page.evaluate(shown)
        page.click(key)
        assert page.evaluate(shown) == before - 1
        assert page.evaluate(f"document.querySelector('{key}').ariaPressed") == "false"
        page.click(key)
        assert page.evaluate(shown) == before
        assert page.problems() == []


@pytest.mark.parametrize("dark", SCHEMES.values(), ids=SCHEMES)
def test_the_key_of_a_hidden_curve_can_still_be_read(browser, pages, dark):
    with browser.page(pages["report"], 1300, dark) as page:
        page.click("#fig-forgetting .key[role=button]")
        found = [one for one in page.findings() if "#fig-forgetting " in one]
        assert not found, "\n".join(["", *found])


@everywhere
def test_the_reading_under_the_pointer_is_within_the_window_and_can_be_read(browser, pages, width, dark):
    with browser.page(pages["audit"], width, dark) as page:
        before = page.findings()
        page.point("#fig-angles svg")
        assert page.evaluate("document.querySelector('#tip').checkVisibility()")
        found = [one for one in page.findings() if one not in before]
        assert not found, "\n".join(["", *found])


@everywhere
def test_the_projections_play_pause_and_follow_the_buttons(browser, pages, width, dark):
    said = "document.querySelector('.lab .said').textContent"
    # in one go, so that no step of the clock lies between a click and what it says
    press = "(() => { const b = document.querySelector('.lab .play'); b.click(); return b.textContent; })()"
    with browser.page(pages["report"], width, dark) as page:
        assert not page.evaluate("document.querySelector('figure:has(.lab) > .still').checkVisibility()")
        page.click(".lab .again")
        assert page.evaluate(said).startswith("step 0 of 0: start;")
        page.click(".lab .learn[data-task='1']")
        assert page.evaluate(said).startswith("step 1 of 1: ")
        assert page.evaluate(f"[{press}, {press}]") == ["Pause", "Play"]
        found = [*page.problems(), *(one for one in page.findings() if "#fig-projections " in one)]
        assert not found, "\n".join(["", *found])


TURN = """((task, angle) => {
  const slider = document.querySelector(`.lab .angle[data-task="${task}"]`);
  slider.value = angle;
  slider.dispatchEvent(new Event("input"));
})"""


def test_the_numbers_of_the_projections_are_those_of_a_run(browser, pages):
    angles, order = np.radians([-20.0, 31.5, 80.0]), [1, 0, 2, 2, 1, 0, 1]
    with browser.page(pages["report"]) as page:
        set_up = page.evaluate("JSON.parse(document.querySelector('.lab').dataset.lab)")
        page.evaluate("document.querySelector('.lab .again').click()")
        for task, angle in enumerate(np.degrees(angles)):
            page.evaluate(f"{TURN}({task}, {angle})")
        for task in order:
            page.evaluate(f"document.querySelector('.lab .learn[data-task=\"{task}\"]').click()")
        made = page.evaluate("document.querySelector('.lab').result")
        said = page.evaluate("document.querySelector('.lab .said').textContent")
    rows = [np.array([[-np.sin(angle), np.cos(angle)]]) for angle in angles]
    tasks = fg.RegressionTasks(rows, [row @ set_up["solution"] for row in rows])
    run = fg.run(tasks, fg.orderings.Explicit(order), len(order), w0=set_up["start"])
    assert made["order"] == order
    assert np.allclose(made["points"], run.iterates, rtol=0, atol=1e-12)
    assert np.allclose(made["losses"], run.losses, rtol=1e-9, atol=1e-14)
    assert made["forgetting"][0] is None
    assert np.allclose(made["forgetting"][1:], run.forgetting, rtol=1e-9, atol=1e-14)
    assert said.startswith(f"step 7 of 7: {set_up['names'][1]} learned; loss ")


@pytest.fixture(scope="module")
def cells():
    """What a notebook shows for results with a picture and without."""
    tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=4)
    return {
        "expectation": fg.expect(tasks, fg.orderings.WithReplacement(), [1, 2, 4, 8, 16, 24])._repr_html_(),
        "bounds": fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), 24)._repr_html_(),
        "tasks": tasks._repr_html_(),
    }


@pytest.mark.parametrize("ground", ["white", "dark"])
@pytest.mark.parametrize("name", ["expectation", "bounds", "tasks"])
def test_a_cell_of_a_notebook_can_be_read_on_light_and_dark_pages(browser, cells, tmp_path, name, ground):
    colours = "background:#fff;color:#000" if ground == "white" else "background:#111;color:#ddd"
    with browser.page(written(tmp_path, cells[name], f"body{{{colours};font:14px sans-serif}}")) as page:
        assert_readable(page)
