// The state as the part of an address after #. What an address says is checked; what is wrong is left out.

import {DATA} from "./data.js";
import {FAMILIES} from "./families.js";
import {FRESH, ORDERS, RANGES, SCHEMES, stateOf} from "./state.js";

const {tasks: MOST_TASKS, dimensions: MOST_DIMENSIONS, rows: MOST_ROWS} = DATA.limits, LARGEST = 1e30;
const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
const number = (text, least = -LARGEST, most = LARGEST) => {
  const value = NUMBER.test(text) ? Number(text) : NaN;
  return value >= least && value <= most ? value : null;
};
const integer = (text, least, most) => /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : null;
const all = (values) => values.length && values.every((value) => value !== null) ? values : null;
const joined = (rows) => rows.map((row) => row.join(",")).join(";");
const matrix = (text) => all(text.split(";").map((row) => all(row.split(",").map((value) => number(value)))));
/** A name: without signs of control, and of a length that fits. */
const tidyName = (text) => text.replace(/[\p{C}\p{Z}]+/gu, " ").trim().slice(0, 40);

/** The state as the part of an address after #. */
export function toHash(state) {
  const words = [["f", state.family], ...Object.entries(state.parameters ?? {}).map(([name, value]) => [`p.${name}`, value])];
  if (state.edited) {
    words.push(["x", state.X.map(joined).join("|")], ["w", joined(state.w)], ["d", state.d ?? "none"]);
    if (state.labels) words.push(["y", joined(state.labels)]);
    if (state.floors) words.push(["floors", state.floors.join(",")]);
  }
  if (state.names.some((name, m) => name !== `task ${m}`) && (state.edited || state.family !== "own"))
    words.push(["names", state.names.map(encodeURIComponent).join("|")]);
  const given = state.order === "given" ? [["given", state.given.join(",")]] : [];
  words.push(["o", state.order], ...given, ["s", state.scheme]);
  for (const name of Object.keys(RANGES)) if (state[name] !== FRESH[name]) words.push([name, state[name]]);
  words.push(["last", state.last], ["k", state.k], ["q", state.quantity], ["at", `${state.axes},${state.task},${state.step},${state.draw}`]);
  if (state.tour !== undefined && state.tour !== null) words.push(["tour", state.tour]);
  return words.map(([name, value]) => `${name}=${value}`).join("&");
}

/** The state of the part of an address after #; a state as at the start where nothing of it can be read. */
export function fromHash(hash) {
  const words = new Map(hash.replace(/^#/, "").split("&").map((word) => { const at = word.indexOf("="); return [word.slice(0, at), word.slice(at + 1)]; }));
  const has = (name) => words.get(name) ?? "", parts = {parameters: {}};
  const named = (object, value) => Object.hasOwn(object, value) ? value : null;
  parts.family = named(FAMILIES, has("f")) ?? (has("f") === "own" && DATA.own ? "own" : DATA.own && !hash ? "own" : "two_lines");
  for (const name of Object.keys(FAMILIES[parts.family]?.parameters ?? {})) {
    const value = number(has(`p.${name}`), -LARGEST, LARGEST);
    if (value !== null) parts.parameters[name] = value;
  }
  const order = named(ORDERS, has("o")), scheme = named(SCHEMES, has("s"));
  if (order) parts.order = order;
  if (scheme) parts.scheme = scheme;
  for (const [name, {any}] of Object.entries(RANGES)) { const value = number(has(name), ...any); if (value !== null) parts[name] = value; }
  const given = all(has("given").split(",").slice(0, 200).map((word) => integer(word, 0, MOST_TASKS - 1)));
  if (given) parts.given = given;
  const last = integer(has("last"), 2, DATA.steps.at(-1)), k = integer(has("k"), 1, DATA.steps.at(-1)), tour = integer(has("tour"), 0, 7);
  if (last !== null) parts.last = last;
  if (k !== null) parts.k = k;
  if (tour !== null) parts.tour = tour;
  if (has("q") === "forgetting") parts.quantity = "forgetting";
  const at = all(has("at").split(",").map((word) => integer(word, 0, 9999)));
  if (at && at.length === 5) Object.assign(parts, {axes: at.slice(0, 2), task: at[2], step: at[3], draw: at[4]});
  const X = has("x") ? all(has("x").split("|").map(matrix)) : null, w = has("w") ? matrix(has("w")) : null;
  if (X && w) {
    const D = w[0].length, rows = X.reduce((sum, task) => sum + task.length, 0), labels = has("y") ? matrix(has("y")) : null;
    const sound = X.length <= MOST_TASKS && D <= MOST_DIMENSIONS && rows <= MOST_ROWS && w.length <= 100 && w.every((column) => column.length === D)
      && X.every((task) => task.length <= 2 * D && task.every((row) => row.length === D))
      && (!labels || labels.length === w.length && labels.every((column) => column.length === rows));
    const floors = has("floors") ? all(has("floors").split(",").map((word) => number(word, 0))) : null;
    if (sound) Object.assign(parts, {X, w, labels, floors: floors && floors.length === X.length ? floors : null, d: has("d") === "none" ? null : integer(has("d"), D, 999999999) ?? D, edited: true});
  }
  if (has("names")) {
    let names = [];
    try { names = has("names").split("|").map((word) => tidyName(decodeURIComponent(word))); } catch { /* no names */ }
    if (names.every((name) => name)) parts.names = names;
  }
  return stateOf(parts);
}
