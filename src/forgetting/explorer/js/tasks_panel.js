// The panel of the tasks: their family, its parameters, and changes by hand.

import {app, change, later} from "./app.js";
import {LEAST_ANGLE, addTask, removeTask, setRank, setRows, setSize, turned} from "./changes.js";
import {DATA} from "./data.js";
import {element, fill, find, set} from "./dom.js";
import {FAMILIES} from "./families.js";
import {norm} from "./linear.js";
import {random} from "./random.js";
import {madeBy} from "./state.js";
import {colour, said} from "./svg.js";

let shownFamily = null, shownTasks = "";

export function showTasks() {
  const {state} = app, sizes = app.computed.P.parts.map((part) => part.norm), m = state.task;
  set("#family", state.edited && state.family !== "own" ? "edited" : state.family);
  set("#rank", state.X[m].length);
  find("#rank").disabled = find("#size").disabled = Boolean(state.labels);
  find("#rank").max = state.w[0].length;
  set("#size", Math.log10(sizes[m]));
  find("#size-said").textContent = said(sizes[m], 3);
  find("#size").setAttribute("aria-valuetext", said(sizes[m], 3));  // the slider itself has a logarithm
  find("#delete").disabled = state.X.length < 2;
  find("#add").disabled = find("#clone").disabled = state.X.length >= DATA.limits.tasks;
  showChips(state);
  showParameters();
}

/** A button for each task, by which it is chosen. */
function showChips({names, task: chosen}) {
  const key = JSON.stringify([names, chosen]);
  if (key === shownTasks) return;
  shownTasks = key;
  const focus = document.activeElement?.parentElement?.id === "tasks";
  find("#tasks").replaceChildren(...names.map((name, task) => {
    const dot = element("i"), button = element("button", {type: "button", "aria-pressed": String(task === chosen), title: name}, dot, name);
    dot.style.background = colour(task);
    button.addEventListener("click", () => change({task}));
    return button;
  }));
  if (focus) find("#tasks").children[chosen].focus();
}

function showParameters() {
  const family = FAMILIES[app.state.family], names = Object.keys(family?.parameters ?? {}), box = find("#parameters"), own = app.state.family === "own";
  find("#family-words").textContent = app.state.edited ? `Changed by hand, from: ${own ? "your tasks" : family.title}.` : own ? `Your tasks, in the ${app.state.w[0].length} dimensions that they span.` : `${family.words[0].toUpperCase()}${family.words.slice(1)}.`;
  if (shownFamily !== app.state.family) {
    shownFamily = app.state.family;
    box.replaceChildren(...names.map((name) => {
      const {title, least, most, step} = family.parameters[name], input = element("input", {type: "range", min: least, max: most, step, id: `p-${name}`});
      input.addEventListener("input", () => rebuild({parameters: {...app.state.parameters, [name]: Number(input.value)}}));
      return element("label", {class: "line"}, title, input, element("output", {id: `p-${name}-said`, "aria-live": "off"}));
    }));
  }
  for (const name of names) {
    find(`#p-${name}`).value = app.state.parameters[name];
    find(`#p-${name}-said`).textContent = String(app.state.parameters[name]);
  }
}

/** Makes the tasks of the family anew. */
export function rebuild(parts) {
  Object.assign(app.state, parts, {edited: false});
  const made = madeBy(app.state);
  Object.assign(app.state, made, {parameters: made.parameters ?? {}, names: made.names ?? made.X.map((_, m) => `task ${m}`)});
  if (parts.family) Object.assign(app.state, {given: app.state.X.map((_, m) => m), axes: [0, 1], task: 0});
  else if (app.state.order === "given") app.state.given = app.state.X.map((_, m) => m);
  change();
}

/** Turns task m by an angle in the plane of the axes, around angles that are too small to a line of another task. */
export function turn(m, angle) {
  if (app.state.axes[0] === app.state.axes[1]) return;
  const rows = app.state.X[m];
  for (const nudge of [0, 1.5 * LEAST_ANGLE, -1.5 * LEAST_ANGLE, 4 * LEAST_ANGLE, -4 * LEAST_ANGLE])
    if (setRows(app.state, m, turned(rows, app.state.axes, angle + nudge))) break;
  change();
}

const freeName = () => { for (let n = app.state.X.length; ; n++) if (!app.state.names.includes(`task ${n}`)) return `task ${n}`; };

export function connectTasks() {
  const families = [...(DATA.own ? [["own", "your tasks"]] : []), ...Object.entries(FAMILIES).map(([name, {title}]) => [name, title]), ["edited", "changed by hand"]];
  fill(find("#family"), families);
  find("#family option[value=edited]").disabled = true;
  find("#family").addEventListener("change", ({target}) => rebuild({family: target.value, parameters: {}}));
  find("#turn").addEventListener("click", () => turn(app.state.task, Math.PI / 180));
  find("#turn-back").addEventListener("click", () => turn(app.state.task, -Math.PI / 180));
  find("#add").addEventListener("click", () => {
    const D = app.state.w[0].length, draw = random(app.state.X.length * 31 + 5), row = Array.from({length: D}, () => draw() - 0.5), size = norm(row);
    addTask(app.state, [row.map((value) => value / size)], freeName());
    later();
  });
  find("#clone").addEventListener("click", () => { addTask(app.state, structuredClone(app.state.X[app.state.task]), freeName(), app.state.task); later(); });
  find("#delete").addEventListener("click", () => { removeTask(app.state, app.state.task); later(); });
  find("#rank").addEventListener("change", ({target}) => { setRank(app.state, app.state.task, Number(target.value)); change(); });
  find("#size").addEventListener("input", ({target}) => { setSize(app.state, app.state.task, 10 ** Number(target.value)); later(); });
}
