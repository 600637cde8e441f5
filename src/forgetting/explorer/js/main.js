// The page: controls change the state, and one frame later everything is computed and drawn once.

import {DATA, BOUNDS} from "./data.js";
import {at, compute} from "./computing.js";
import {MOST_SUBSETS} from "./moments.js";
import {random} from "./random.js";
import {fresh, gapRate, leastFresh} from "./bounds.js";
import {FAMILIES} from "./families.js";
import {LEAST_ANGLE, ORDERS, RANGES, SCHEMES, addTask, fromHash, madeBy, removeTask, setRank, setRows, setSize, stateOf, tidy, toHash, toPython, turned} from "./state.js";
import {colour, pngFile, said, saveFigure, svgFile} from "./figures.js";
import {averaged, worstOf, drawAngles, drawCurves, drawPlane, drawShares, lineAngle} from "./views.js";
import {norm} from "./linear.js";
import {TOUR} from "./tour.js";

const find = (selector) => document.querySelector(selector);
const element = (tag, attributes = {}, ...inner) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...inner);
  return made;
};

let state = fromHash(location.hash), computed = null, plane = null, curves = null, waiting = false, written = "";

// ------------------------------------------------------------------------------------------------------------ drawing

const change = (parts = {}) => { Object.assign(state, parts); tidy(state); later(); };
const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(render); } };

function render() {
  waiting = false;
  computed = compute(state);
  curves = drawCurves(find("#fig-curves svg"), state, computed);
  const focused = document.activeElement?.closest?.("#fig-plane .handle")?.dataset.task;
  plane = drawPlane(find("#fig-plane svg"), state, computed);
  if (focused !== undefined) find(`#fig-plane .handle[data-task="${state.task}"]`)?.focus({preventScroll: true});
  drawAngles(find("#fig-angles svg"), state, computed);
  drawShares(find("#fig-shares svg"), state, computed);
  showNumbers();
  showControls();
  quietly();
  window.explorer = {state, computed, at, computeNow: () => compute(state), renderNow: render, change, svgFile, pngFile, toHash, programs: {fresh, gapRate, leastFresh}};  // for tests, and for those who look
}

function showNumbers() {
  const {result, best, rows} = computed, k = state.k, box = find("#numbers"), near = (interval) => interval ? ` (${said(interval[k][0], 2)} to ${said(interval[k][1], 2)})` : "";
  const number = (label, value, more = "") => element("span", {}, label, element("b", {}, value), more), mean = averaged(state) ? "expected " : "";
  // a difference of losses that is rounding is 0
  const forgotten = computed.P.keeps && Math.abs(result.forgetting[k]) < 1e-15 * result.loss[0] ? 0 : result.forgetting[k];
  box.replaceChildren(
    number(`${mean}loss after k = ${k}`, said(result.loss[k]) + near(result.lossInterval)),
    number(`${mean}forgetting`, said(forgotten) + near(result.forgettingInterval)),
    number(`tightest bound on the ${state.quantity}`, best ? said(best.value) : "none applies", best?.bound.name ?? ""),
  );
  computed.worst = worstOf(state, computed.setting);
  const stored = computed.worst.find(([at]) => at === k);
  if (stored) box.append(number(`worst known ${state.X.length} tasks`, said(stored[1]), stored[2] ? "certified" : ""));
  const warn = result.how === "simulated" ? `More than ${MOST_SUBSETS} tasks in random order: the mean of ${result.runs} simulated orders, with 95 % intervals.`
    : state.labels ? "No w solves all these tasks: w\u22c6 is the least-squares solution, and bounds on tasks with noise are in fg.bounds.evaluate."
    : state.noise ? "Labels have noise: values are expected over the noise and the order. The bounds need tasks with a common solution."
    : state.alpha !== 1 ? "w is multiplied by what is kept before each step: no bound covers that." : "";
  const short = result.last < state.most ? `For tasks of this size the page goes to k = ${result.last}; the package goes on.` : "";
  for (const words of [warn, short]) if (words) box.append(element("span", {class: "warn"}, words));
  computed.words = `After ${k} steps, ${ORDERS[state.order]}: ${mean}loss ${said(result.loss[k])}${near(result.lossInterval)}, ${mean}forgetting ${said(forgotten)}${near(result.forgettingInterval)}. `
    + (best ? `Tightest bound on the ${state.quantity}: ${said(best.value)}, ${best.bound.name}.` : `No bound on the ${state.quantity} applies.`) + (stored ? ` The worst known ${state.X.length} tasks have ${said(stored[1])}.` : "") + (warn ? ` ${warn}` : "");
  if (find("#bounds").open) showBounds(rows);
}

const SIGNS = {upper: "\u2264", lower: "worst \u2265", rate: "O of", floor: "\u2265"};
function showBounds(rows) {
  find("#bounds tbody").replaceChildren(...rows.map(({bound, value}) => element("tr", {}, element("td", {}, SIGNS[bound.kind]), element("td", {class: "num"}, said(value)), element("td", {}, `${bound.name}${bound === computed.best?.bound ? " (tightest)" : ""}`), element("td", {}, bound.formula))));
  const left = BOUNDS.unshown.map(({name}) => name);
  find("#bounds-said").textContent = `On the expected ${state.quantity} after k = ${state.k} steps. S is |w\u22c6|\u00b2 R\u00b2, R the largest norm, r the mean rank. ${left.length ? `Not shown here, and in fg.bounds.evaluate: ${left.join("; ")}.` : ""}`;
}

/** What need not be there in each frame: the address, the words for screen readers, the lines of Python. */
let timer = 0;
function quietly() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    find("#said").textContent = computed.words;
    written = `#${toHash(state)}`;
    try { history.replaceState(null, "", written); } catch { /* a page within a page has no address of its own */ }
    if (find("#python").open) find("#python pre").textContent = python();
  }, 350);
}

const python = () => {
  const ks = DATA.steps.filter((k) => k <= state.most), every = Math.ceil(ks.length / 12);
  return toPython(state, [...new Set([...ks.filter((_, i) => i % every === 0), state.k, ks.at(-1)])].sort((a, b) => a - b));
};

// ----------------------------------------------------------------------------------------------------------- controls

const toSlider = ({log}, value) => log ? Math.log10(value) : value;
const fromSlider = ({log}, value) => log ? Number((10 ** value).toPrecision(3)) : Number(value);

function fill(select, options) {
  select.replaceChildren(...Object.entries(options).map(([value, words]) => element("option", {value}, words)));
}

let shownFamily = null, shownTasks = "";
function showControls() {
  const set = (selector, value) => { const control = find(selector); if (control !== document.activeElement || control.type === "range" || control.localName === "select") control.value = value; };
  set("#family", state.edited && state.family !== "own" ? "edited" : state.family);
  for (const [name, range] of Object.entries(RANGES)) {
    set(`#${name}`, toSlider(range, state[name]));
    find(`#${name}-said`).textContent = said(state[name], 3);
  }
  set("#order", state.order);
  set("#scheme", state.scheme);
  set("#given", state.given.join(" "));
  find("#given-line").hidden = state.order !== "given";
  find("#eta-line").hidden = state.scheme !== "sgd";
  find("#lam-line").hidden = state.scheme !== "ridge";
  find("#noise").disabled = Boolean(state.labels) || state.w.length > 1;
  const steps = DATA.steps.filter((k) => k <= computed.result.last);
  find("#k").max = steps.length - 1;
  set("#k", steps.indexOf(state.k));
  find("#k").setAttribute("aria-valuetext", String(state.k));
  find("#k-said").textContent = state.k;
  set("#last", state.last);
  find("#last").disabled = state.most !== state.last;
  for (const radio of document.querySelectorAll("[name=quantity]")) radio.checked = radio.value === state.quantity;
  find("#step").max = computed.walk.last;
  set("#step", state.step);
  const {order} = computed.walk;
  find("#step-said").textContent = state.step ? `${state.step}, task ${order[state.step - 1]}` : "start";
  find("#step").setAttribute("aria-valuetext", state.step ? `step ${state.step}, ${state.names[order[state.step - 1]]} learned` : "start");
  find("#draw").hidden = !["with", "without"].includes(state.order);
  const sizes = computed.P.parts.map((part) => part.norm), m = state.task;
  set("#rank", state.X[m].length);
  find("#rank").disabled = find("#size").disabled = Boolean(state.labels);
  find("#rank").max = state.w[0].length;
  set("#size", Math.log10(sizes[m]));
  find("#size-said").textContent = said(sizes[m], 3);
  find("#delete").disabled = state.X.length < 2;
  find("#add").disabled = find("#clone").disabled = state.X.length >= DATA.limits.tasks;
  const key = JSON.stringify([state.names, state.task]);
  if (key !== shownTasks) {
    shownTasks = key;
    const focus = document.activeElement?.parentElement?.id === "tasks";
    find("#tasks").replaceChildren(...state.names.map((name, task) => {
      const dot = element("i"), button = element("button", {type: "button", "aria-pressed": String(task === state.task), title: name}, dot, name);
      dot.style.background = colour(task);
      button.addEventListener("click", () => change({task}));
      return button;
    }));
    if (focus) find("#tasks").children[state.task].focus();
  }
  showParameters();
  showAxes();
}

function showParameters() {
  const family = FAMILIES[state.family], names = Object.keys(family?.parameters ?? {}), box = find("#parameters"), own = state.family === "own";
  find("#family-words").textContent = state.edited ? `Changed by hand, from: ${own ? "your tasks" : family.title}.` : own ? `Your tasks, in the ${state.w[0].length} dimensions that they span.` : `${family.words[0].toUpperCase()}${family.words.slice(1)}.`;
  if (shownFamily !== state.family) {
    shownFamily = state.family;
    box.replaceChildren(...names.map((name) => {
      const {title, least, most, step} = family.parameters[name], input = element("input", {type: "range", min: least, max: most, step, id: `p-${name}`});
      input.addEventListener("input", () => rebuild({parameters: {...state.parameters, [name]: Number(input.value)}}));
      return element("label", {class: "line"}, title, input, element("output", {id: `p-${name}-said`}));
    }));
  }
  for (const name of names) {
    find(`#p-${name}`).value = state.parameters[name];
    find(`#p-${name}-said`).textContent = String(state.parameters[name]);
  }
}

let shownAxes = "";
function showAxes() {
  const D = state.w[0].length, box = find("#axes"), key = `${D} ${state.axes}`;
  if (key === shownAxes) return;
  shownAxes = key;
  box.replaceChildren(...(D > 2 ? [0, 1] : []).map((place) => {
    const select = element("select", {"aria-label": place ? "vertical axis" : "horizontal axis"});
    fill(select, Object.fromEntries(Array.from({length: D}, (_, axis) => [axis, `w${axis + 1}`])));
    select.value = state.axes[place];
    select.addEventListener("change", () => {
      const axes = [...state.axes], chosen = Number(select.value);
      if (axes[1 - place] === chosen) axes[1 - place] = axes[place];
      axes[place] = chosen;
      change({axes});
    });
    return select;
  }));
}

/** Makes the tasks of the family anew. */
function rebuild(parts) {
  Object.assign(state, parts, {edited: false});
  const made = madeBy(state);
  Object.assign(state, made, {parameters: made.parameters ?? {}, names: made.names ?? made.X.map((_, m) => `task ${m}`)});
  if (parts.family) Object.assign(state, {given: state.X.map((_, m) => m), axes: [0, 1], task: 0});
  else if (state.order === "given") state.given = state.X.map((_, m) => m);
  change();
}

/** Turns task m by an angle in the plane of the axes, around angles that are too small to a line of another task. */
function turn(m, angle) {
  if (state.axes[0] === state.axes[1]) return;
  const rows = state.X[m];
  for (const nudge of [0, 1.5 * LEAST_ANGLE, -1.5 * LEAST_ANGLE, 4 * LEAST_ANGLE, -4 * LEAST_ANGLE])
    if (setRows(state, m, turned(rows, state.axes, angle + nudge))) break;
  change();
}

function connect() {
  const families = {...(DATA.own ? {own: "your tasks"} : {}), ...Object.fromEntries(Object.entries(FAMILIES).map(([name, {title}]) => [name, title])), edited: "changed by hand"};
  fill(find("#family"), families);
  find("#family option[value=edited]").disabled = true;
  fill(find("#order"), ORDERS);
  fill(find("#scheme"), SCHEMES);
  fill(find("#last"), Object.fromEntries([10, 30, 100, 300, 1000].map((last) => [last, String(last)])));
  for (const [name, range] of Object.entries(RANGES)) {
    const control = find(`#${name}`);
    Object.assign(control, {min: toSlider(range, range.least), max: toSlider(range, range.most), step: range.log ? 0.05 : range.step});
    control.addEventListener("input", () => change({[name]: Math.min(Math.max(fromSlider(range, control.value), range.least), range.most)}));
  }
  find("#family").addEventListener("change", ({target}) => rebuild({family: target.value, parameters: {}}));
  find("#order").addEventListener("change", ({target}) => change({order: target.value}));
  find("#scheme").addEventListener("change", ({target}) => change({scheme: target.value}));
  find("#given").addEventListener("input", ({target}) => {
    const given = target.value.split(/[\s,]+/).filter((word) => /^\d{1,2}$/.test(word)).map(Number).filter((m) => m < state.X.length).slice(0, 200);
    if (given.length) change({given});
  });
  find("#last").addEventListener("change", ({target}) => change({last: Number(target.value)}));
  find("#k").addEventListener("input", ({target}) => change({k: DATA.steps[Number(target.value)]}));
  find("#step").addEventListener("input", ({target}) => change({step: Number(target.value)}));
  for (const radio of document.querySelectorAll("[name=quantity]")) radio.addEventListener("change", () => change({quantity: radio.value}));
  find("#to-controls").addEventListener("click", () => find("#controls").scrollIntoView());
  find("#draw").addEventListener("click", () => change({draw: state.draw % 9999 + 1}));
  find("#turn").addEventListener("click", () => turn(state.task, Math.PI / 180));
  find("#turn-back").addEventListener("click", () => turn(state.task, -Math.PI / 180));
  find("#add").addEventListener("click", () => {
    const D = state.w[0].length, draw = random(state.X.length * 31 + 5), row = Array.from({length: D}, () => draw() - 0.5), size = norm(row);
    addTask(state, [row.map((value) => value / size)], freeName());
    later();
  });
  find("#clone").addEventListener("click", () => { addTask(state, structuredClone(state.X[state.task]), freeName(), state.task); later(); });
  find("#delete").addEventListener("click", () => { removeTask(state, state.task); later(); });
  find("#rank").addEventListener("change", ({target}) => { setRank(state, state.task, Number(target.value)); change(); });
  find("#size").addEventListener("input", ({target}) => { setSize(state, state.task, 10 ** Number(target.value)); later(); });
  find("form").addEventListener("submit", (event) => event.preventDefault());
  for (const figure of document.querySelectorAll("figure")) for (const ending of ["PNG", "SVG"]) {
    const button = element("button", {type: "button", "aria-label": `Save ${figure.querySelector("h2").textContent} as ${ending}`}, ending);
    button.addEventListener("click", () => saveFigure(figure.querySelector("svg"), figure.id.replace("fig-", "forgetting-"), ending.toLowerCase()));
    figure.querySelector(".save").append(button);
  }
  find("#bounds").addEventListener("toggle", () => showBounds(computed.rows));
  find("#python").addEventListener("toggle", () => { find("#python pre").textContent = python(); });
  find("#copy").addEventListener("click", () => copy(python(), "Copied."));
  find("#link").addEventListener("click", () => copy(`${location.href.split("#")[0]}#${toHash(state)}`, "Address copied."));
  find("#version").textContent = DATA.version;
  connectPlane();
  connectCurves();
  connectTheme();
  connectTour();
  addEventListener("hashchange", () => { if (location.hash !== written) { state = fromHash(location.hash); showTour(); later(); } });
  const watcher = new ResizeObserver(() => { for (const svg of document.querySelectorAll("figure svg")) svg.knownWidth = null; later(); });
  watcher.observe(find(".grid"));
}

const freeName = () => { for (let n = state.X.length; ; n++) if (!state.names.includes(`task ${n}`)) return `task ${n}`; };

async function copy(words, done) {
  try { await navigator.clipboard.writeText(words); find("#copied").textContent = done; } catch {
    find("#python pre").textContent = words;
    getSelection().selectAllChildren(find("#python pre"));
    find("#copied").textContent = "Selected: press Ctrl+C.";
  }
}

function connectPlane() {
  const svg = find("#fig-plane svg");
  let held = null, before = 0;
  const angleOf = (event) => { const box = svg.getBoundingClientRect(); return plane.angleAt(event.clientX - box.left, event.clientY - box.top); };
  svg.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle) return;
    held = Number(handle.dataset.task);
    before = angleOf(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    change({task: held});
    requestAnimationFrame(() => find(`#fig-plane .handle[data-task="${held}"]`)?.focus({preventScroll: true}));
  });
  svg.addEventListener("pointermove", (event) => {
    if (held === null || !plane) return;
    const now = angleOf(event), line = lineAngle(state.X[held], state.axes);
    if (line === null) return;
    turn(held, now - before);
    before = now;
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { held = null; });
  svg.addEventListener("keydown", (event) => {
    const {key, shiftKey} = event, small = (shiftKey ? 0.1 : 1) * Math.PI / 180;
    if (key === "ArrowLeft" || key === "ArrowRight") turn(state.task, key === "ArrowLeft" ? small : -small);
    else if (key === "ArrowUp" || key === "ArrowDown") change({task: (state.task + (key === "ArrowUp" ? state.X.length - 1 : 1)) % state.X.length});
    else return;
    event.preventDefault();
  });
}

function connectCurves() {
  const svg = find("#fig-curves svg");
  const pick = (event) => {
    const wanted = curves.stepAt(event.clientX - svg.getBoundingClientRect().left), steps = DATA.steps.filter((k) => k <= computed.result.last);
    change({k: steps.reduce((best, k) => Math.abs(Math.log(k / wanted)) < Math.abs(Math.log(best / wanted)) ? k : best, steps[0])});
  };
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); pick(event); });
  svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) pick(event); });
}

function connectTheme() {
  const button = find("#theme"), dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : dark.matches, label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  dark.addEventListener("change", label);
  label();
}

function showTour(focus = false) {
  const box = find("#tour"), place = state.tour ?? null;
  box.hidden = place === null;
  find("#tour-start").hidden = find(".subtitle").hidden = place !== null;
  if (place === null) return;
  const {title, text, tries} = TOUR[place];
  find("#tour-where").textContent = `Step ${place + 1} of ${TOUR.length}`;
  find("#tour-title").textContent = title;
  find("#tour-text").replaceChildren(...text.map((words) => element("p", {}, words)));
  find("#tour-back").disabled = place === 0;
  find("#tour-next").hidden = place === TOUR.length - 1;
  find("#tour-try").replaceChildren("Try:", ...tries.map(([words, parts]) => {
    const button = element("button", {type: "button"}, words);
    button.addEventListener("click", () => {
      const {family = state.family, parameters, ...rest} = parts;
      Object.assign(state, rest);
      if (parts.family || parameters) rebuild({family, parameters: parameters ?? {}});
      change(rest);
    });
    return button;
  }));
  if (focus) find("#tour-title").focus();
}

function goTo(place) {
  state = place === null ? {...state, tour: null} : stateOf({...TOUR[place].state, tour: place});
  showTour(true);
  later();
}

function connectTour() {
  find("#tour-start").addEventListener("click", () => goTo(0));
  find("#tour-next").addEventListener("click", () => goTo(state.tour + 1));
  find("#tour-back").addEventListener("click", () => goTo(state.tour - 1));
  find("#tour-end").addEventListener("click", () => { goTo(null); find("#tour-start").focus(); });
}

connect();
showTour();
render();
