// Changes of the tasks by hand: turned, added, cloned, deleted, with another rank or norm.

import {DATA} from "./data.js";
import {complement, decompose, dot, norm, product, transpose} from "./linear.js";
import {tidy} from "./state.js";

export const LEAST_ANGLE = 1e-3;  // between directions of two tasks that are not the same

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
  Object.assign(state, {X, family: state.family === "own" ? "own" : state.family, edited: true, turned: null});
  return true;
}

export function removeTask(state, m) {
  if (state.X.length < 2) return;
  const keep = (list) => list && list.filter((_, other) => other !== m);
  const rows = state.X.map(({length}) => length), first = rows.slice(0, m).reduce((sum, count) => sum + count, 0);
  const labels = state.labels && state.labels.map((column) => column.filter((_, n) => n < first || n >= first + rows[m]));
  Object.assign(state, {X: keep(state.X), names: keep(state.names), floors: keep(state.floors), labels, edited: true, turned: null});
  state.given = state.given.filter((task) => task !== m).map((task) => task > m ? task - 1 : task);
  tidy(state);
}

/** Adds a task with rows, and labels if the tasks have labels of their own. */
export function addTask(state, rows, name, from = null) {
  const total = state.X.reduce((sum, {length}) => sum + length, 0);
  if (state.X.length >= DATA.limits.tasks || total + rows.length > DATA.limits.rows) return false;
  if (state.labels) {
    const start = from === null ? -1 : state.X.slice(0, from).reduce((sum, {length}) => sum + length, 0);
    state.labels = state.labels.map((column, c) => [...column, ...rows.map((row, n) => start < 0 ? dot(row, state.w[c]) : column[start + n])]);
  }
  if (state.floors) state.floors = [...state.floors, from === null ? 0 : state.floors[from]];
  Object.assign(state, {X: [...state.X, rows], names: [...state.names, name], task: state.X.length, edited: true, turned: null});
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
  Object.assign(state, {edited: true, turned: null});
  return true;
}
