// The state of the page, and its form in the address. What an address says is checked; what is wrong is left out.

import {DATA} from "./data.js";
import {FAMILIES} from "./families.js";
import {complement, decompose, dot, norm, product, transpose} from "./linear.js";

export const ORDERS = {
  with: "random, with repetition", without: "random, each task once", cyclic: "cyclic", given: "given",
  greedy: "greedy, each task once", "greedy-again": "greedy, with repetition",
};
export const SCHEMES = {kaczmarz: "projection", sgd: "gradient step", ridge: "ridge"};
export const LEAST_ANGLE = 1e-3;  // between directions of two tasks that are not the same
const {tasks: MOST_TASKS, dimensions: MOST_DIMENSIONS, rows: MOST_ROWS} = DATA.limits, LARGEST = 1e30;

/** The numbers that a slider sets: least, largest, usual, and the step of the slider; `log` for a scale of logarithms. */
export const RANGES = {
  eta: {least: 0.05, most: 1.95, usual: 0.5, step: 0.05}, lam: {least: 1e-3, most: 100, usual: 0.5, log: true},
  alpha: {least: 0.5, most: 1, usual: 1, step: 0.01}, noise: {least: 0, most: 1, usual: 0, step: 0.01},
};

const FRESH = {
  family: "two_lines", parameters: {angle: 45}, order: "with", given: [], scheme: "kaczmarz", eta: 0.5, lam: 0.5, alpha: 1, noise: 0,
  last: 100, k: 10, quantity: "loss", axes: [0, 1], task: 0, step: 6, draw: 1, names: null,
};

/** A state from some of its parts. */
export function stateOf(parts = {}) {
  const state = {...structuredClone(FRESH), ...structuredClone(parts)};
  if (!state.X) Object.assign(state, madeBy(state));
  state.names = state.names && state.names.length === state.X.length ? state.names : state.X.map((_, m) => `task ${m}`);
  return tidy(state);
}

/** Rows, solution and labels of the family of a state. */
export function madeBy({family, parameters}) {
  if (family === "own" && DATA.own) {
    const {X, w, labels, floors, realizable, d, names} = DATA.own;
    return structuredClone({X, w, labels: realizable ? null : labels, floors, d, names});
  }
  const {make, parameters: known} = FAMILIES[family] ?? FAMILIES.two_lines, values = {};
  for (const [name, {usual, least, most, step}] of Object.entries(known)) {
    const value = Math.min(Math.max(parameters[name] ?? usual, least), most);
    values[name] = step >= 1 ? least + step * Math.floor((value - least) / step) : value;
  }
  const {X, w} = make(values);
  return {X: structuredClone(X), w: [[...w]], labels: null, floors: null, d: w.length, names: null, parameters: values};
}

/** The same state with choices that fit the tasks. */
export function tidy(state) {
  const T = state.X.length, D = state.w[0].length, once = state.order === "without" || state.order === "greedy";
  state.task = Math.min(state.task, T - 1);
  state.axes = state.axes.map((axis) => Math.min(axis, D - 1));
  if (state.axes[0] === state.axes[1]) state.axes = D > 1 ? [0, 1] : [0, 0];
  state.given = state.given.filter((m) => m < T);
  if (!state.given.length) state.given = state.X.map((_, m) => m);
  if (state.labels || state.w.length > 1) state.noise = 0;
  if (state.order.startsWith("greedy") && (state.noise || state.labels || state.alpha !== 1)) state.order = "cyclic";
  state.most = once ? T : state.order === "given" ? state.given.length : state.last;
  const steps = DATA.steps.filter((k) => k <= state.most);
  state.k = steps.reduce((best, k) => Math.abs(k - state.k) < Math.abs(best - state.k) ? k : best, steps[0]);
  state.step = Math.min(state.step, Math.min(state.most, 60));
  return state;
}

export const schemeOf = (state) => ({kind: state.scheme, eta: state.eta, lam: state.lam, alpha: state.alpha});
export const problemOf = (state) => ({dim: state.w[0].length, tasks: state.X, w: state.labels ? null : state.w, labels: state.labels, floors: state.floors});

// -------------------------------------------------------------------------------------------------- changes of the tasks

/** Rows of task m, turned by an angle in the plane of two axes. */
export const turned = (rows, [a, b], angle) => rows.map((row) => {
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)], made = [...row];
  made[a] = cosine * row[a] - sine * row[b];
  made[b] = sine * row[a] + cosine * row[b];
  return made;
});

const spanOf = (rows) => {
  const {sigma, right} = decompose(rows.map((row) => Float64Array.from(row))), most = Math.max(...sigma);
  return right.filter((_, i) => sigma[i] > 1e-12 * most);
};

/** The sines of the angles between two tasks. */
function sines(one, two) {
  const [a, b] = [spanOf(one), spanOf(two)].sort((x, y) => x.length - y.length);
  if (!a.length) return [];
  const rest = complement(b, a[0].length), off = product(a, transpose(rest, a[0].length));
  return rest.length ? Array.from(decompose(off).sigma) : a.map(() => 0);
}

/** Whether all angles of task m to the others are 0 or large enough for the numbers to keep their digits. */
const apart = (X, m) => X.every((rows, other) => other === m || sines(rows, X[m]).every((sine) => sine < 1e-10 || sine >= 0.999 * LEAST_ANGLE));

/** Sets the rows of task m, unless an angle would be too small, or a new one 0; says whether it did. */
export function setRows(state, m, rows) {
  const X = state.X.map((old, other) => other === m ? rows : old), shared = (one, two) => sines(one, two).filter((sine) => sine < 1e-10).length;
  if (!apart(X, m) || X.some((old, other) => other !== m && shared(old, rows) > shared(old, state.X[m]))) return false;
  Object.assign(state, {X, family: state.family === "own" ? "own" : state.family, edited: true});
  return true;
}

export function removeTask(state, m) {
  if (state.X.length < 2) return;
  const keep = (list) => list && list.filter((_, other) => other !== m);
  const rows = state.X.map(({length}) => length), first = rows.slice(0, m).reduce((sum, count) => sum + count, 0);
  const labels = state.labels && state.labels.map((column) => column.filter((_, n) => n < first || n >= first + rows[m]));
  Object.assign(state, {X: keep(state.X), names: keep(state.names), floors: keep(state.floors), labels, edited: true});
  state.given = state.given.filter((task) => task !== m).map((task) => task > m ? task - 1 : task);
  tidy(state);
}

/** Adds a task with rows, and labels if the tasks have labels of their own. */
export function addTask(state, rows, name, from = null) {
  const total = state.X.reduce((sum, {length}) => sum + length, 0);
  if (state.X.length >= MOST_TASKS || total + rows.length > MOST_ROWS) return false;
  if (state.labels) {
    const start = from === null ? -1 : state.X.slice(0, from).reduce((sum, {length}) => sum + length, 0);
    state.labels = state.labels.map((column, c) => [...column, ...rows.map((row, n) => start < 0 ? dot(row, state.w[c]) : column[start + n])]);
  }
  if (state.floors) state.floors = [...state.floors, from === null ? 0 : state.floors[from]];
  Object.assign(state, {X: [...state.X, rows], names: [...state.names, name], task: state.X.length, edited: true});
  tidy(state);
  return true;
}

/** Sets the rank of task m: rows are left out, or added orthogonally to its own, of the length of its last row. */
export function setRank(state, m, rank) {
  const D = state.w[0].length, rows = state.X[m], more = complement(spanOf(rows), D), size = norm(rows[rows.length - 1]);
  if (state.labels || rank < 1 || rank > D || rank - rows.length > more.length) return false;
  return setRows(state, m, rank <= rows.length ? rows.slice(0, rank) : [...rows, ...more.slice(0, rank - rows.length).map((row) => [...row].map((value) => value * size))]);
}

/** Multiplies the rows of task m, so that its norm is `size`. */
export function setSize(state, m, size) {
  const old = Math.max(...decompose(state.X[m].map((row) => Float64Array.from(row))).sigma);
  if (!(old > 0) || state.labels) return false;
  state.X = state.X.map((rows, other) => other === m ? rows.map((row) => row.map((value) => value * size / old)) : rows);
  state.edited = true;
  return true;
}

// ------------------------------------------------------------------------------------------------------------ the address

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
  for (const [name, {least, most}] of Object.entries(RANGES)) { const value = number(has(name), least, most); if (value !== null) parts[name] = value; }
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

/** A state as lines of Python that compute the same with the package. */
export function toPython(state, ks) {
  const known = !state.edited && FAMILIES[state.family]?.python, list = (values) => `[${[...values].join(", ")}]`;
  const stack = (rows) => `[${rows.map(list).join(", ")}]`, lines = ["import numpy as np", "import forgetting as fg", ""];
  if (known) lines.push(`tasks = ${known(state.parameters)}`);
  else {
    // what no w fits within a task is a row of zeros with a label
    const outputs = state.w.length > 1, rest = state.X.map((_, m) => state.labels && state.floors?.[m] > 0 ? Math.sqrt(2 * state.floors[m]) : 0);
    const rows = state.X.map((task, m) => rest[m] ? [...task, task[0].map(() => 0)] : task);
    if (state.d !== state.w[0].length) lines.push("# the given tasks in their joint row space");
    lines.push("X = [", ...rows.map((task) => `    ${stack(task)},`), "]");
    if (state.labels) {
      let first = 0;
      const columns = state.X.map((task, m) => { first += task.length; return state.labels.map((column, c) => [...column.slice(first - task.length, first), ...(rest[m] ? [c ? 0 : rest[m]] : [])]); });
      lines.push("y = [", ...columns.map((task) => `    ${outputs ? stack(task[0].map((_, n) => task.map((column) => column[n]))) : list(task[0])},`), "]");
    } else lines.push(`w = np.array(${outputs ? `${stack(state.w)}).T` : `${list(state.w[0])})`}`, "y = [np.array(rows) @ w for rows in X]");
    lines.push("tasks = fg.RegressionTasks(X, y)");
  }
  const order = {with: '"with-replacement"', without: '"without-replacement"', cyclic: '"cyclic"', given: `fg.orderings.Explicit(${list(state.given)})`,
    greedy: "fg.orderings.GreedyDistance(repeat=False)", "greedy-again": "fg.orderings.GreedyDistance()"}[state.order];
  const step = {kaczmarz: "fg.schemes.Kaczmarz()", sgd: `fg.schemes.SGD(${state.eta})`, ridge: `fg.schemes.Ridge(${state.lam})`}[state.scheme];
  lines.push(`scheme = ${state.alpha === 1 ? step : `fg.schemes.Decay(${state.alpha}, ${step})`}`, `ordering = ${order}`, `k = ${list(ks)}`);
  lines.push(`e = fg.expect(tasks, ordering, k, scheme=scheme${state.noise ? `, noise=${state.noise}` : ""})`, "print(e.loss, e.forgetting)");
  if (!state.noise && state.alpha === 1) lines.push(`print(fg.bounds.evaluate(tasks, ordering, ${state.k}, scheme=scheme${state.d && state.d !== state.w[0].length ? `, d=${state.d * (state.order.startsWith("greedy") ? state.w.length : 1)}` : ""}))`);
  return `${lines.join("\n")}\n`;
}
