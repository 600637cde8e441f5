"""The page in a real Chromium: what a reader sees and does, and what a hostile name or address cannot do."""

import re

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from explorer.states import State, random_state
from forgetting.explorer.page import MODULES, page_html

VIEWS = {
    "start": "",
    "noise": "f=gaussian&o=with&noise=0.2&q=forgetting",
    "order": "f=catastrophic&p.eps=2.6&o=given&tour=1&q=forgetting",
    "simulated": "f=greedy_failure&o=without&tour=4",
    "worst": "f=worst-3-4&o=with&last=30&k=4&tour=5",
    "ridge": "f=equiangular&p.T=8&s=ridge&lam=3&alpha=0.9&o=cyclic",
}
ORDERS = "with&noise=0.3&s=ridge", "without", "greedy-again", "with", "cyclic", "given", "greedy"
HOSTILE = "</script><script>window.hurt=1</script>\u202e<img src=x onerror='window.hurt=1'>"


def go(page, words):
    page.evaluate(f"location.hash = {words!r}; dispatchEvent(new Event('hashchange'))")  # now, and not a frame later
    page.settle()


def lines_run(page):
    """What the lines of "The same in Python" make, by their names."""
    for open_ in ("false", "true"):
        page.evaluate(f"document.querySelector('#python').open = {open_}")
    page.settle()
    names: dict[str, object] = {}
    exec(page.evaluate("document.querySelector('#python pre').textContent"), names)
    return names


@pytest.mark.parametrize(
    ("width", "theme"), [(1300, "light"), (400, "dark"), (1300, "dark"), (400, "light")][: rounds(2, 4)]
)
def test_every_view_can_be_read(browser, page_file, width, theme):
    with browser.page(page_file, width, dark=theme == "dark") as page:
        for name, words in VIEWS.items():
            go(page, words)
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            page.settle()
            found = [*page.problems(), *page.findings()]
            assert not found, "\n".join([name, *found])


def test_the_browser_itself_refuses_every_request_and_every_other_script(browser, page_file):
    with browser.page(page_file) as page:
        page.evaluate(
            "window.stopped = []; addEventListener('securitypolicyviolation', (event) => stopped.push(event))"
        )
        page.evaluate("fetch('https://example.org/').catch(() => 0)")
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))")
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'window.hurt = 1'}))"
        )
        page.evaluate("document.body.setAttribute('style', 'color: red')")
        page.settle()
        stopped = page.evaluate("stopped.map((event) => event.effectiveDirective).sort()")
        assert stopped == ["connect-src", "img-src", "script-src-elem", "style-src-attr"]
        assert page.evaluate("window.hurt === undefined")


def test_the_page_is_one_small_file_without_addresses():
    page = page_html()
    assert len(page.encode()) < 10**6
    assert not re.search(r"(https?:)?//[a-z]", page.replace("http://www.w3.org/2000/svg", ""))
    assert not [word for word in ("onclick=", "innerHTML", "eval(", "outerHTML", "document.write") if word in page]


def test_modules_share_no_name():
    script = page_html()
    names = re.findall(r"^(?:const|let|function|async function) (\w+)", script, re.MULTILINE)
    inner = re.findall(r"^const (table\d+|compute\d*)", script, re.MULTILINE)
    outer = [name for name in names if name not in inner]
    twice = {name for name in outer if outer.count(name) > 1}
    assert not twice - {"spectral", "scale", "span", "trivial", "power_left", "visited", "reach", "x"}
    assert len(MODULES) == len(set(MODULES))


def test_hostile_names_and_addresses_inject_nothing(browser, tmp_path):
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.6, 0.8]]], [[1.0], [0.0]], names=[HOSTILE, "b"])
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        names = "names=" + "|".join(["%3Cimg%20src%3Dx%20onerror%3Dwindow.hurt%3D1%3E"] * 2)
        hostile = (
            "", f"f=two_lines&{names}", f"f={HOSTILE}&o={HOSTILE}&x={HOSTILE}&k=1e9&at=9,9,9,9,9", "%%%&=&&x=1;|&w=",
            "f=__proto__&o=constructor&s=toString", "x=1,nan|2,3&w=1,2", "x=1e999,0|0,1&w=1,0", "names=%E0%A4%A",
            "x=1e30,0|0,1e-30&w=1e30,1", "x=1e31,0|0,1&w=1,0",
            "s=ridge-fixed&last=999999", "s=sgd&eta=1e999&lam=-1&alpha=0&noise=1e30", "s=sgd&eta=9&o=cyclic&last=300",
            "s=ridge-increasing&lam=nan&o=greedy&noise=1",
        )  # fmt: skip
        for words in hostile:
            go(page, words)
            assert page.evaluate(
                "window.hurt === undefined && document.querySelectorAll('main img, main script').length === 0"
            )
            assert page.evaluate("document.querySelectorAll('#fig-curves path').length > 2")
        assert not page.problems()


@pytest.mark.parametrize(
    "tasks",
    [
        fg.RegressionTasks([[[1.0, 2.0, 0.0]]], [[1.0]]),
        fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [2.0]]),
        fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [0.0]]),
        fg.RegressionTasks([np.zeros((1, 2)), np.eye(2)], [[0.0], [1.0, 1.0]]),
        fg.RegressionTasks([[[1e8, 0.0]], [[0.0, 1e-8]]], [[1e8], [1e-8]]),
        fg.families.repeated(fg.families.two_lines(0.5), 6),
    ],
    ids=["one task", "one dimension", "solved at the start", "a task of zeros", "norms far apart", "clones"],
)
def test_unusual_tasks_are_drawn(browser, tmp_path, tasks):
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        for order in ORDERS[: rounds(3, 7)]:
            go(page, f"f=own&last=10&o={order}")
        for button in ("#turn", "#clone", "#add", "#delete"):
            page.evaluate(f"document.querySelector('{button}').click()")
            page.settle()
        assert not [*page.problems(), *page.findings()]
        words = (
            "[...document.querySelectorAll('figure svg *')].flatMap((one) => [...one.attributes].map((at) => at.value))"
        )
        assert not page.evaluate(f"{words}.some((value) => /NaN|Infinity|undefined/.test(value))")


def test_long_and_wide_names_are_shortened_and_not_cut(browser, tmp_path):
    names = ["a</script><b>", "WWWWWWWWWWWWWWWW", "課題課題課題課題課題課題", "i" * 40]
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    tasks = fg.RegressionTasks(
        [row[None] + 0.3 * rows[4] for row in rows[:4]], [[1.0], [2.0], [0.5], [1.0]], names=names
    )
    fg.explore(tasks, tmp_path / "own.html")
    for width in (400, 1300)[: rounds(1, 2)]:
        with browser.page(tmp_path / "own.html", width) as page:
            assert not [*page.problems(), *page.findings()]
            assert page.evaluate("explorer.state.names") == names


def test_an_address_holds_the_state(page):
    rng = np.random.default_rng(2)
    tasks, w = [rng.standard_normal((2, 3)) for _ in range(3)], rng.standard_normal(3)
    for order, k in (("without", 3), ("with", 30)):
        state = State(tasks, w, order, {"kind": "ridge", "lam": 0.3}, k=k, noise=0.25, alpha=0.9)
        go(page, state.hash)
        words = page.evaluate("explorer.toHash(explorer.state)")
        one, two = (page.evaluate(f"explorer.at({text!r})") for text in (state.hash, words))
        assert one == two
        assert len(one["loss"]) == k + 1
        assert page.evaluate("explorer.state.X") == [X.tolist() for X in tasks]


def test_an_address_holds_tasks_of_any_size_and_angle(page):
    tasks = {
        "far": ("1e9,0|6e8,8e8", "1e7,2", "30000"),
        "close": ("1,0|1,1e-6", "1,0", "2"),
        "kernel": ("1,0|0,1", "1,0", "none"),
    }
    for name, (X, w, d) in tasks.items():
        go(page, f"f=two_lines&x={X}&w={w}&d={d}&o=with")
        shown = page.evaluate("[explorer.state.X, explorer.state.w[0], explorer.state.d]")
        rows = [[[float(value) for value in row.split(",")]] for row in X.split("|")]
        assert shown == [rows, [float(value) for value in w.split(",")], None if d == "none" else int(d)], name
        assert page.evaluate("explorer.at(explorer.toHash(explorer.state)).loss") == page.evaluate(
            "explorer.computed.result.loss"
        )
    go(page, "f=two_lines&x=1,0|0,1&w=1,0&d=1&o=with")
    assert page.evaluate("explorer.state.d") == 2
    assert not page.problems()


def assert_python_computes_the_same(page):
    names = lines_run(page)
    steps, k, start = names["k"], page.evaluate("explorer.state.k"), page.evaluate("explorer.computed.result.loss[0]")
    for quantity, digits in (("loss", 1e-9), ("forgetting", 1e-7)):
        shown, value = page.evaluate(f"explorer.computed.result.{quantity}"), getattr(names["e"], quantity)
        assert np.allclose([shown[k] for k in steps], value, rtol=digits, atol=1e-13 * start)
    rows = [row for row in names["bounds"] if row.applies and row.k == k and row.quantity == row.bound.quantity]
    stated = {row.bound.key: row.value for row in rows if row.quantity == "loss"}
    bounds = page.evaluate("Object.fromEntries(explorer.computed.rows.map((row) => [row.bound.key, row.value]))")
    assert bounds == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize(
    "words",
    [
        "f=two_lines&p.angle=30&o=with&s=ridge&lam=0.5",
        "f=gaussian&o=cyclic&noise=0.1",
        "f=gaussian&o=with&noise=0.3&k=40",
        "f=two_lines&p.angle=20&o=with&noise=0.3&k=40",
        "f=equiangular&o=without&alpha=0.9",
        "f=gaussian&o=with&s=ridge-fixed&k=100",
        "f=gaussian&o=with&s=ridge-increasing&k=7",
        "f=back_and_forth&o=greedy&s=sgd&eta=2.5",
    ],
)
def test_the_lines_of_python_compute_what_the_page_shows(page, words):
    go(page, words)
    assert_python_computes_the_same(page)


def test_the_lines_of_python_of_random_states_compute_what_the_page_shows(page):
    rng = np.random.default_rng(30)
    for _ in range(rounds(6, 60)):
        state = random_state(rng)
        go(page, state.hash)
        assert_python_computes_the_same(page)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_lines_of_python_hold_tasks_of_ones_own(browser, tmp_path, outputs):
    rng = np.random.default_rng(4)
    tasks = fg.RegressionTasks(rng.standard_normal((3, 5, 4)), rng.standard_normal((3, 5, outputs)).squeeze())
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        names = lines_run(page)
        exact = fg.expect(tasks, "with-replacement", names["k"])
        assert np.allclose(names["e"].loss, exact.loss, rtol=1e-10)
        assert np.allclose(names["e"].forgetting, exact.forgetting, rtol=1e-8, atol=1e-14)


def test_the_lines_of_python_run_for_a_greedy_order_of_several_outputs(browser, tmp_path):
    rng = np.random.default_rng(4)
    tasks = fg.RegressionTasks(rng.standard_normal((2, 2, 9)), rng.standard_normal((2, 2, 3)))
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        go(page, "f=own&o=greedy-again&last=10")
        names = lines_run(page)
        assert np.allclose(names["e"].loss, [page.evaluate("explorer.computed.result.loss")[k] for k in names["k"]])


def test_tasks_are_turned_by_hand_and_by_keys_and_stay_apart(browser, page_file):
    with browser.page(page_file) as page:
        go(page, "f=two_lines&p.angle=10")
        angle = "(() => { const [x, y] = explorer.state.X[0][0]; return Math.atan2(-x, y) * 180 / Math.PI; })()"
        page.evaluate("document.querySelector('#fig-plane .handle[data-task=\"0\"]').focus()")
        key = {"key": "ArrowLeft", "code": "ArrowLeft", "windowsVirtualKeyCode": 37}
        for _ in range(3):
            page.command("Input.dispatchKeyEvent", type="keyDown", **key)
            page.command("Input.dispatchKeyEvent", type="keyUp", **key)
            page.settle()
        assert page.evaluate(angle) == pytest.approx(3.0, abs=1e-9)
        for _ in range(7):  # onto the other line, which is at 10 degrees, and not nearer than the least angle
            page.command("Input.dispatchKeyEvent", type="keyDown", **key)
            page.settle()
        assert abs(page.evaluate(angle) - 10) * np.pi / 180 == pytest.approx(1.5e-3, rel=1e-6)
        assert page.evaluate(
            "Number(document.querySelector('.handle[data-task=\"0\"]').getAttribute('aria-valuenow'))"
        ) == pytest.approx(10, abs=0.2)
        place = page.point('.handle[data-task="1"] circle')
        page.command("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **place)
        page.settle()
        page.command(
            "Input.dispatchMouseEvent",
            type="mouseMoved",
            button="left",
            buttons=1,
            x=place["x"] + 30,
            y=place["y"] + 20,
        )
        page.settle()
        page.command(
            "Input.dispatchMouseEvent", type="mouseReleased", button="left", x=place["x"] + 30, y=place["y"] + 20
        )
        x, y = page.evaluate("explorer.state.X[1][0]")
        assert abs(np.degrees(np.arctan2(-x, y)) - 10) > 1
        assert not page.problems()


def test_tasks_are_added_cloned_deleted_and_reordered(browser, page_file):
    with browser.page(page_file) as page:
        for button, count in (("#clone", 3), ("#add", 4), ("#delete", 3)):
            page.click(button)
            page.settle()
            assert page.evaluate("explorer.state.X.length") == count
        assert page.evaluate("explorer.state.X[0]") == page.evaluate("explorer.state.X[2]")
        page.evaluate("explorer.change({order: 'given', given: [1, 0, 1]})")
        page.settle()
        assert page.evaluate("explorer.computed.walk.order") == [1, 0, 1]


def test_an_address_that_is_copied_in_a_notebook_opens_the_same_view_in_a_saved_page(browser, page_file, tmp_path):
    page = fg.explore(fg.families.two_lines(0.5))
    page.save(tmp_path / "explorer.html")
    body = f"<!doctype html><title>notebook</title>{page._repr_html_()}"
    (tmp_path / "notebook.html").write_text(body, encoding="utf-8")
    with browser.page(tmp_path / "notebook.html") as notebook, notebook.frame() as frame:
        frame("explorer.change({order: 'cyclic', k: 7}); 0")
        frame("navigator.clipboard.writeText = (words) => { window.copied = words; return Promise.resolve(); }; 0")
        frame("document.querySelector('#link').click()")
        address = frame("window.copied")
        assert "fg.explore(tasks" in frame("document.querySelector('#copied').textContent")
        shown = frame("explorer.at(explorer.toHash(explorer.state)).loss")
        assert not notebook.problems()
    name, words = address.split("#")
    assert name == "explorer.html"
    with browser.page(tmp_path / name) as saved:
        go(saved, words)
        assert saved.evaluate("[explorer.state.order, explorer.state.k, explorer.state.family]") == ["cyclic", 7, "own"]
        assert saved.evaluate("explorer.computed.result.loss") == shown


def test_noise_and_greedy_orders_exclude_each_other_and_say_so(page):
    options = "[...document.querySelector('#order').options].filter((one) => one.disabled).map((one) => one.value)"
    go(page, "f=gaussian&o=greedy")
    assert page.evaluate("document.querySelector('#noise').disabled")
    go(page, "f=gaussian&o=greedy&noise=0.3")
    assert page.evaluate("[explorer.state.order, explorer.state.noise]") == ["greedy", 0]
    go(page, "f=gaussian&o=cyclic&noise=0.3&last=30")
    assert page.evaluate(options) == ["greedy", "greedy-again"]
    assert page.evaluate("explorer.computed.result.last") == 30


def test_curves_end_at_the_last_k(page):
    for last in (10, 30, 100, 300, 1000, 77):
        go(page, f"f=two_lines&o=with&last={last}&k=1000")
        assert page.evaluate("[explorer.computed.result.last, document.querySelector('#last').value]") == [
            last,
            str(last),
        ]
        assert page.evaluate("explorer.state.k") == (last if last != 77 else 74)


def test_a_length_of_a_step_can_be_typed(page):
    go(page, "f=two_lines&o=with&s=sgd")
    for typed, taken in (("2.75", 2.75), ("0", 2.75), ("1e-5", 1e-5), ("1e9", 1e-5), ("", 1e-5)):
        page.evaluate(
            f"(() => {{ const box = document.querySelector('#eta-said'); box.focus(); box.value = '{typed}';"
            " box.dispatchEvent(new Event('input')); })()"
        )
        page.settle()
        assert page.evaluate("explorer.state.eta") == taken
        assert page.evaluate("document.querySelector('#eta-said').value") == typed  # nobody is interrupted while typing
    page.evaluate("document.querySelector('#eta-said').blur()")


def test_figures_are_saved_as_svg_and_png(page):
    go(page, "")
    for figure in ("curves", "plane", "angles", "shares"):
        svg = page.evaluate(f"explorer.svgFile(document.querySelector('#fig-{figure} svg')).text()")
        assert svg.startswith("<svg")
        assert not [word for word in ("var(", "class=") if word in svg]
        size = page.evaluate(
            f"explorer.pngFile(document.querySelector('#fig-{figure} svg')).then((file) => [file.type, file.size])"
        )
        assert size[0] == "image/png"
        assert size[1] > 3000
    assert not page.problems()


def test_a_screen_reader_hears_the_numbers(page):
    go(page, "f=two_lines&p.angle=45&o=with&k=10")
    page.evaluate("new Promise((done) => setTimeout(done, 500))")
    said = page.evaluate("document.querySelector('#said').textContent")
    numbers = r"expected loss 0\.008011, expected forgetting 0\.006809\."
    assert re.match(rf"After 10 steps, random, with repetition: {numbers} Tightest bound on the loss", said)
    labels = page.evaluate("[...document.querySelectorAll('figure svg')].map((svg) => svg.getAttribute('aria-label'))")
    words = (
        "expected loss is 0.008011",
        "to a distance of",
        "the largest is 0.707 between task 0 and task 1",
        "task 0 0.0034",
    )
    assert all(said in label for said, label in zip(words, labels, strict=True)), labels
    go(page, "f=catastrophic&p.eps=2.6")  # equal small turns, then four large ones to 90 degrees
    label = page.evaluate("document.querySelector('#fig-angles svg').getAttribute('aria-label')")
    assert re.search(r"the largest is 0\.99\d? between task \d and task \d, and no pair has less than 0 between", label)
    assert label.endswith("between task 0 and task 11")


def test_a_slider_says_the_number_that_it_sets_and_says_it_once(page):
    go(page, "f=two_lines&o=with&s=ridge&lam=0.02&noise=0.3")
    page.evaluate("explorer.change({X: [[[0, 0.25]], [[0.6, 0.8]]]})")
    page.settle()
    said = "[...document.querySelectorAll('#size, #lam, #noise')].map((one) => one.getAttribute('aria-valuetext'))"
    assert page.evaluate(said) == ["0.25", "0.02", "0.3"]
    live = "[...document.querySelectorAll('output')].every((one) => one.getAttribute('aria-live') === 'off')"
    assert page.evaluate(live)  # what is beside a slider is not read again


def test_the_numbers_in_the_tour_are_those_of_the_package():
    turning, greedy = fg.families.catastrophic(2.6), fg.families.greedy_failure(12)
    once, again = fg.expect(turning, list(range(12)), 12), fg.expect(turning, "cyclic", 13)
    assert 0.22 < once.forgetting < 0.23  # "almost half of the largest", which is 1/2
    assert max(again.loss, again.forgetting) < 1e-30  # the first line, once more, "takes w to w*"
    ridge = fg.expect(turning, list(range(12)), 12, scheme=fg.schemes.Ridge(3))
    assert (round(float(ridge.forgetting), 2), float(ridge.loss) < float(once.loss) / 4) == (0.02, True)
    orders = [fg.run(greedy, np.random.default_rng(seed).permutation(11), k=11).losses[-1] for seed in range(300)]
    assert 4 < fg.run(greedy, fg.orderings.GreedyDistance(repeat=False), 11).losses[-1] / np.mean(orders) < 6


def test_the_tour_has_eight_steps_and_its_last_uses_only_words_that_it_introduced(browser, page_file):
    with browser.page(page_file) as page:
        page.click("#tour-start")
        texts = []
        for place in range(8):
            assert page.evaluate("document.querySelector('#tour-where').textContent") == f"Step {place + 1} of 8"
            texts.append(page.evaluate("document.querySelector('#tour-text').textContent"))
            for button in range(page.evaluate("document.querySelectorAll('#tour-try button').length")):
                page.evaluate(f"document.querySelectorAll('#tour-try button')[{button}].click()")
                page.settle()
            if place < 7:
                page.evaluate("document.querySelector('#tour-next').click()")
        assert not page.problems()
    last = texts.pop()
    assert len(re.findall(r"[.](?= |$|[A-Z])", last)) == 2
    before = set(re.findall(r"[a-z]+", " ".join(texts).lower()))
    terms = {
        "projection",
        "gradient",
        "bounds",
        "expected",
        "loss",
        "forgetting",
        "tasks",
        "random",
        "order",
        "steps",
        "dimensions",
        "randomness",
        "repetition",
        "learned",
    }
    assert terms <= before
    small = {"so", "become", "they", "even", "prevents", "number", "which", "is"}
    assert set(re.findall(r"[a-z]+", last.lower())) <= before | small
