// The state of the page: the tasks, how they are learned, and what is shown of it.

import {DATA} from "./data.js";
import {FAMILIES} from "./families.js";

export const ORDERS = {
  with: "random, with repetition", without: "random, each task once", cyclic: "cyclic", given: "given",
  greedy: "greedy, each task once", "greedy-again": "greedy, with repetition",
};
export const SCHEMES = {
  kaczmarz: "projection", sgd: "gradient step", ridge: "ridge", "ridge-fixed": "ridge, strength log k", "ridge-increasing": "ridge, increasing",
};

/** The numbers that a slider sets: least, largest, usual, and the step of the slider; `log` for a scale of logarithms.
 *
 * `any` has the least and the largest number that can be typed, or be in an address.
 */
export const RANGES = {
  eta: {least: 0.05, most: 4, usual: 0.5, step: 0.05, any: [1e-6, 1e3]}, lam: {least: 1e-3, most: 100, usual: 0.5, log: true, any: [1e-9, 1e9]},
  alpha: {least: 0.5, most: 1, usual: 1, step: 0.01, any: [0.01, 1]}, noise: {least: 0, most: 1, usual: 0, step: 0.01, any: [0, 100]},
};

export const FRESH = {
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
    const {X, w, labels, floors, realizable, d, names, turned} = DATA.own;
    return structuredClone({X, w, labels: realizable ? null : labels, floors, d, names, turned});
  }
  const {make, parameters: known} = FAMILIES[family] ?? FAMILIES.two_lines, values = {};
  for (const [name, {usual, least, most, step}] of Object.entries(known)) {
    const value = Math.min(Math.max(parameters[name] ?? usual, least), most);
    values[name] = step >= 1 ? least + step * Math.floor((value - least) / step) : value;
  }
  const {X, w} = make(values);
  return {X: structuredClone(X), w: [[...w]], labels: null, floors: null, d: w.length, names: null, turned: null, parameters: values};
}

/** Whether labels may have noise: a greedy order would depend on it, and so would its values. */
export const canBeNoisy = ({order, labels, w}) => !labels && w.length === 1 && !order.startsWith("greedy");

/** The same state with choices that fit the tasks. */
export function tidy(state) {
  const T = state.X.length, D = state.w[0].length, once = state.order === "without" || state.order === "greedy";
  state.task = Math.min(state.task, T - 1);
  state.axes = state.axes.map((axis) => Math.min(axis, D - 1));
  if (state.axes[0] === state.axes[1]) state.axes = D > 1 ? [0, 1] : [0, 0];
  state.given = state.given.filter((m) => m < T);
  if (!state.given.length) state.given = state.X.map((_, m) => m);
  if (!canBeNoisy(state)) state.noise = 0;
  state.most = once ? T : state.order === "given" ? state.given.length : state.last;
  const steps = DATA.steps.filter((k) => k <= state.most);
  state.k = steps.reduce((best, k) => Math.abs(k - state.k) < Math.abs(best - state.k) ? k : best, steps[0]);
  state.step = Math.min(state.step, Math.min(state.most, 60));
  return state;
}

export const schemeOf = (state) => ({kind: state.scheme, eta: state.eta, lam: state.lam, alpha: state.alpha, horizon: state.most});
export const problemOf = (state) => ({dim: state.w[0].length, tasks: state.X, w: state.labels ? null : state.w, labels: state.labels, floors: state.floors});

/** Whether values are means, over random orders or over noise. */
export const averaged = (state) => state.order === "with" || state.order === "without" || state.noise > 0;
