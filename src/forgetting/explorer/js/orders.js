// Single orders: given, cyclic, greedy and drawn.

import {dot} from "./linear.js";
import {LARGEST_VALUE, emptied, floorOf, mean} from "./problem.js";

/** The errors z_0, ..., z_k of all outputs under a given order; `choose` picks the task of a step, and `visit` says whether to go on. */
function walk(P, last, choose, visit) {
  let Z = P.Z.map((z) => Float64Array.from(z));
  visit(0, -1, Z);
  for (let k = 1; k <= last; k++) {
    const m = choose(k, Z);
    if (m === null) break;
    const {A, B, start} = P.partAt(m, k);
    Z = Z.map((z, c) => Float64Array.from(A, (row, a) => {
      let sum = 0;
      for (let i = 0; i < row.length; i++) sum += row[i] * z[i];
      if (P.affine) for (let n = 0; n < B[a].length; n++) sum += B[a][n] * P.E[c][start + n];
      return sum;
    }));
    if (!visit(k, m, Z)) break;
  }
}

function lossAt(P, m, Z) {
  const {X, start} = P.parts[m];
  let sum = 0;
  X.forEach((row, i) => Z.forEach((z, c) => { sum += (dot(row, z) - P.E[c][start + i]) ** 2; }));
  return sum / 2 + floorOf(m, P);
}

/** Values at k = 0, ..., last of one order, and its iterates (of the first output) in the coordinates of the problem. */
export function single(P, last, choose) {
  const {T} = P, made = {...emptied(T, last), order: [], path: []}, counts = new Array(T).fill(0), kept = new Array(T).fill(0);
  walk(P, last, choose, (k, m, Z) => {
    const losses = P.parts.map((_, task) => lossAt(P, task, Z));
    made.tasks.push(losses);
    made.loss.push(mean(losses));
    made.path.push(outside(P, Z[0]));
    if (!k) return true;
    made.order.push(m);
    counts[m] += 1;
    if (P.keeps) kept[m] += losses[m];
    const shares = losses.map((loss, task) => k > 1 ? (counts[task] * loss - kept[task]) / k : 0);
    made.shares.push(shares);
    made.forgetting.push(shares.reduce((sum, value) => sum + value, 0));
    return made.loss[k] < LARGEST_VALUE;
  });
  return {...made, last: made.order.length, how: "exact"};
}

/** The iterate w = c + z of an error in the basis, in the coordinates of the problem; c is -z_0 of the start w_0 = 0. */
function outside(P, z) {
  const made = new Float64Array(P.basis.length ? P.basis[0].length : 0);
  P.basis.forEach((direction, a) => { const value = z[a] - P.Z[0][a]; for (let i = 0; i < made.length; i++) made[i] += value * direction[i]; });
  return made;
}

/** The rule of a greedy order: the task farthest from w, the first of those that tie. */
export function greedy(P, repeat) {
  const done = new Set();
  /** The square of the distance to the solutions of least squares of a task. */
  const distance = ({span, left, sigma, start}, Z) => span.reduce((sum, u, i) => sum + Z.reduce((part, z, c) => {
    const target = P.affine ? left[i].reduce((along, value, n) => along + value * P.E[c][start + n], 0) / sigma[i] : 0;
    return part + (dot(u, z) - target) ** 2;
  }, 0), 0);
  return (_, Z) => {
    let best = null, most = -1;
    P.parts.forEach((part, m) => {
      if (!repeat && done.has(m)) return;
      const far = Math.sqrt(distance(part, Z));
      if (far > most * (1 + 1e-9)) [best, most] = [m, far];
    });
    done.add(best);
    return best;
  };
}
