// The panels of how tasks are learned, and of what is read: order, step, noise, k; and the controls below the path.

import {app, change} from "./app.js";
import {DATA} from "./data.js";
import {element, fill, find, set} from "./dom.js";
import {ORDERS, RANGES, SCHEMES, canBeNoisy} from "./state.js";
import {said} from "./svg.js";

const toSlider = ({log}, value) => log ? Math.log10(value) : value;
const fromSlider = ({log}, value) => log ? Number((10 ** value).toPrecision(3)) : Number(value);

export function showLearning() {
  const {state, computed} = app;
  for (const [name, range] of Object.entries(RANGES)) {
    set(`#${name}`, toSlider(range, state[name]));
    find(`#${name}`).setAttribute("aria-valuetext", said(state[name], 3));
    if (find(`#${name}-said`).localName === "input") set(`#${name}-said`, state[name]);
    else find(`#${name}-said`).textContent = said(state[name], 3);
  }
  set("#order", state.order);
  set("#scheme", state.scheme);
  set("#given", state.given.join(" "));
  find("#given-line").hidden = state.order !== "given";
  find("#eta-line").hidden = state.scheme !== "sgd";
  find("#lam-line").hidden = state.scheme !== "ridge";
  find("#noise").disabled = !canBeNoisy(state);
  for (const option of find("#order").options) option.disabled = state.noise > 0 && !canBeNoisy({...state, order: option.value});
  const steps = DATA.steps.filter((k) => k <= computed.result.last);
  find("#k").max = steps.length - 1;
  set("#k", steps.indexOf(state.k));
  find("#k").setAttribute("aria-valuetext", String(state.k));
  find("#k-said").textContent = state.k;
  showLast(state);
  for (const radio of document.querySelectorAll("[name=quantity]")) radio.checked = radio.value === state.quantity;
  showPath(state, computed.walk);
}

/** The last k of the curves: one of a few, or that of the address. */
function showLast({last, most}) {
  const ends = [...new Set([...DATA.ends, last])].sort((a, b) => a - b), select = find("#last");
  if (select.length !== ends.length || [...select.options].some(({value}, i) => Number(value) !== ends[i])) fill(select, ends.map((k) => [k, String(k)]));
  select.value = last;
  select.disabled = most !== last;
}

/** The controls below the path: the step, another draw, and the axes. */
function showPath({step, order, names, noise}, {last, order: tasks}) {
  find("#step").max = last;
  set("#step", step);
  find("#step-said").textContent = step ? `${step}, task ${tasks[step - 1]}` : "start";
  find("#step").setAttribute("aria-valuetext", step ? `step ${step}, ${names[tasks[step - 1]]} learned` : "start");
  find("#draw").hidden = !["with", "without"].includes(order) && !noise;
  showAxes();
}

let shownAxes = "";
function showAxes() {
  const D = app.state.w[0].length, box = find("#axes"), key = `${D} ${app.state.axes}`;
  if (key === shownAxes) return;
  shownAxes = key;
  box.replaceChildren(...(D > 2 ? [0, 1] : []).map((place) => {
    const select = element("select", {"aria-label": place ? "vertical axis" : "horizontal axis"});
    fill(select, Array.from({length: D}, (_, axis) => [axis, `w${axis + 1}`]));
    select.value = app.state.axes[place];
    select.addEventListener("change", () => {
      const axes = [...app.state.axes], chosen = Number(select.value);
      if (axes[1 - place] === chosen) axes[1 - place] = axes[place];
      axes[place] = chosen;
      change({axes});
    });
    return select;
  }));
}

export function connectLearning() {
  fill(find("#order"), Object.entries(ORDERS));
  fill(find("#scheme"), Object.entries(SCHEMES));
  for (const [name, range] of Object.entries(RANGES)) {
    const control = find(`#${name}`), typed = find(`#${name}-said`), [least, most] = range.any;
    Object.assign(control, {min: toSlider(range, range.least), max: toSlider(range, range.most), step: range.log ? 0.05 : range.step});
    control.addEventListener("input", () => change({[name]: Math.min(Math.max(fromSlider(range, control.value), range.least), range.most)}));
    if (typed.localName === "input") typed.addEventListener("input", () => { const value = Number(typed.value); if (typed.value && value >= least && value <= most) change({[name]: value}); });
  }
  find("#order").addEventListener("change", ({target}) => change({order: target.value}));
  find("#scheme").addEventListener("change", ({target}) => change({scheme: target.value}));
  find("#given").addEventListener("input", ({target}) => {
    const given = target.value.split(/[\s,]+/).filter((word) => /^\d{1,2}$/.test(word)).map(Number).filter((m) => m < app.state.X.length).slice(0, 200);
    if (given.length) change({given});
  });
  find("#last").addEventListener("change", ({target}) => change({last: Number(target.value)}));
  find("#k").addEventListener("input", ({target}) => change({k: DATA.steps[Number(target.value)]}));
  find("#step").addEventListener("input", ({target}) => change({step: Number(target.value)}));
  for (const radio of document.querySelectorAll("[name=quantity]")) radio.addEventListener("change", () => change({quantity: radio.value}));
  find("#draw").addEventListener("click", () => change({draw: app.state.draw % 9999 + 1}));
}
