// The mean over many random orders that are drawn, for numbers of tasks whose subsets are too many.

import {zeros} from "./linear.js";
import {floorOf} from "./problem.js";
import {normal, random, shuffled} from "./random.js";

/** The number of simulated orders of a larger number of tasks: as many as take about 20 ms, from 1000 to 10000. */
const runsFor = ({T, D, N}) => Math.round(Math.min(Math.max(6e6 / (T * (D * D + N * D + 20 * T)), 1000), 10000) / 100) * 100;

/** Each task at most once, by simulated orders: means, and intervals that hold them at 95 % each.
 *
 * The intervals are those of Maurer and Pontil (2009), for values in a known range, where steps do not lengthen the
 * error of tasks with a common solution; else those of the normal law. Label noise is drawn, too.
 */
export function simulated(P, last, seed, bound) {
  const {T, D, N} = P, draw = random(seed), noisy = P.Z.length > P.columns, affine = P.E.some((e) => e.some((value) => value !== 0)), own = P.columns, runs = runsFor(P);
  const stepAt = (k) => P.parts.map((_, m) => { const {A, B, start} = P.partAt(m, k); return {A: Float64Array.from(A.flatMap((row) => [...row])), B, start}; });
  const steps = P.alike ? new Array(last).fill(stepAt(1)) : Array.from({length: last}, (_, i) => stepAt(i + 1)), X = Float64Array.from(P.parts.flatMap((part) => part.X.flatMap((row) => [...row])));
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
        const {A, B, start} = steps[k - 1][order[k - 1]], z = Z[c];
        for (let a = 0, at = 0; a < D; a++) {
          let sum = 0;
          for (let b = 0; b < D; b++) sum += A[at++] * z[b];
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
