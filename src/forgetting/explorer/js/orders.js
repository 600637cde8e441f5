// Single orders: given, cyclic, greedy and drawn, and the mean over many that are drawn.

import {dot, zeros} from "./linear.js";
import {emptied, floorOf, mean} from "./problem.js";
import {normal, random, shuffled} from "./random.js";

/** The errors z_0, ..., z_k of all outputs under a given order; `choose` picks the next task where the order is greedy. */
function walk(P, last, choose, visit) {
  let Z = P.Z.map((z) => Float64Array.from(z));
  visit(0, -1, Z);
  for (let k = 1; k <= last; k++) {
    const m = choose(k, Z);
    if (m === null) break;
    const {A, B, start} = P.parts[m];
    Z = Z.map((z, c) => Float64Array.from(A, (row, a) => {
      let sum = 0;
      for (let i = 0; i < row.length; i++) sum += row[i] * z[i];
      if (P.affine) for (let n = 0; n < B[a].length; n++) sum += B[a][n] * P.E[c][start + n];
      return sum;
    }));
    visit(k, m, Z);
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
    if (!k) return;
    made.order.push(m);
    counts[m] += 1;
    if (P.keeps) kept[m] += losses[m];
    const shares = losses.map((loss, task) => k > 1 ? (counts[task] * loss - kept[task]) / k : 0);
    made.shares.push(shares);
    made.forgetting.push(shares.reduce((sum, value) => sum + value, 0));
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
  return (_, Z) => {
    let best = null, most = -1;
    P.parts.forEach(({span}, m) => {
      if (!repeat && done.has(m)) return;
      const distance = Math.sqrt(span.reduce((sum, u) => sum + Z.reduce((part, z) => part + dot(u, z) ** 2, 0), 0));
      if (distance > most * (1 + 1e-9)) [best, most] = [m, distance];
    });
    done.add(best);
    return best;
  };
}

/** The number of simulated orders of a larger number of tasks: as many as take about 20 ms, from 1000 to 10000. */
const runsFor = ({T, D, N}) => Math.round(Math.min(Math.max(6e6 / (T * (D * D + N * D + 20 * T)), 1000), 10000) / 100) * 100;

/** Each task at most once, by simulated orders: means, and intervals that hold them at 95 % each.
 *
 * The intervals are those of Maurer and Pontil (2009), for values in a known range, where steps do not lengthen the
 * error of tasks with a common solution; else those of the normal law. Label noise is drawn, too.
 */
export function simulated(P, last, seed, bound) {
  const {T, D, N} = P, draw = random(seed), noisy = P.Z.length > P.columns, affine = P.E.some((e) => e.some((value) => value !== 0)), own = P.columns, runs = runsFor(P);
  const A = P.parts.map((part) => Float64Array.from(part.A.flatMap((row) => [...row]))), X = Float64Array.from(P.parts.flatMap((part) => part.X.flatMap((row) => [...row])));
  const sums = [0, 1].map(() => [new Float64Array(last + 1), new Float64Array(last + 1)]), losses = new Float64Array(T);
  const tasks = zeros(last + 1, T), shares = zeros(last + 1, T), Z = Array.from({length: own}, () => new Float64Array(D)), E = Array.from({length: own}, () => new Float64Array(N)), to = new Float64Array(D);
  for (let run = 0; run < runs; run++) {
    const order = shuffled(T, draw), kept = new Float64Array(T);
    for (let c = 0; c < own; c++) { Z[c].set(P.Z[c]); E[c].set(P.E[c]); }
    if (noisy) for (let n = 0; n < N; n++) {  // an output of noise with a random size, for each label
      const size = normal(draw), z = P.Z[own + n], e = P.E[own + n];
      for (let a = 0; a < D; a++) Z[0][a] += size * z[a];
      for (let i = 0; i < N; i++) E[0][i] += size * e[i];
    }
    for (let k = 0; k <= last; k++) {
      if (k) for (let c = 0; c < own; c++) {
        const m = order[k - 1], {B, start} = P.parts[m], z = Z[c];
        for (let a = 0, at = 0; a < D; a++) {
          let sum = 0;
          for (let b = 0; b < D; b++) sum += A[m][at++] * z[b];
          if (affine) for (let n = 0; n < B[a].length; n++) sum += B[a][n] * E[c][start + n];
          to[a] = sum;
        }
        z.set(to);
      }
      let total = 0, forgotten = 0;
      for (let m = 0, at = 0; m < T; m++) {
        const first = at;
        let sum = 0;
        for (let c = 0; c < own; c++) {
          at = first;
          for (let n = P.parts[m].start; n < P.parts[m].end; n++) {
            let missed = -E[c][n];
            for (let a = 0; a < D; a++) missed += X[at++] * Z[c][a];
            sum += missed * missed;
          }
        }
        losses[m] = sum / 2 + floorOf(m, P);
        total += losses[m] / T;
        tasks[k][m] += losses[m] / runs;
      }
      if (k && P.keeps) kept[order[k - 1]] = losses[order[k - 1]];
      if (k > 1) for (let t = 0; t < k; t++) {
        const m = order[t], share = (losses[m] - kept[m]) / k;
        forgotten += share;
        shares[k][m] += share / runs;
      }
      [total, forgotten].forEach((value, q) => { sums[q][0][k] += value; sums[q][1][k] += value * value; });
    }
  }
  const interval = ([first, second], low, high) => Array.from({length: last + 1}, (_, k) => {
    const middle = first[k] / runs, variance = Math.max(second[k] / runs - middle * middle, 0) * runs / (runs - 1);
    const part = Math.log(4 / 0.05);
    const wide = bound ? Math.sqrt(2 * variance * part / runs) + 7 * (high - low) * part / (3 * (runs - 1)) : 1.96 * Math.sqrt(variance / runs);
    return [Math.max(middle - wide, bound ? low : -Infinity), bound ? Math.min(middle + wide, high) : middle + wide];
  });
  const values = ([first]) => Array.from(first, (sum) => sum / runs);
  return {
    loss: values(sums[0]), forgetting: values(sums[1]).map((value, k) => k ? value : NaN), tasks, shares, last, how: "simulated", runs,
    lossInterval: interval(sums[0], 0, bound), forgettingInterval: interval(sums[1], P.keeps ? -bound : 0, bound),
  };
}
