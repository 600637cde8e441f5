// The noise of tasks that no w solves, as in `Misfit` of the package: upper bounds are made of these numbers, so that all
// but the floor are raised by what rounding may have taken from them. Squares are summed over outputs, and label noise is
// one output for each label, which makes them means over the noise.

import {dot, leastSquares} from "./linear.js";
import {EPS, floorOf, mean} from "./problem.js";

const squares = (vectors) => vectors.reduce((sum, vector) => sum + dot(vector, vector), 0);
const differences = (one, two) => one.map((vector, c) => vector.map((value, i) => value - two[c][i]));

/** For prepared tasks; `turned` bounds the rounding of their row spaces, and `drawn` says whether tasks are drawn independently. */
export function misfitOf(P, turned, drawn) {
  const {T, Z, parts} = P, all = allDirections(P), shares = all.map(({sigma}) => sigma * sigma / T);
  const rests = parts.map((part, m) => squares(P.E.map((column) => unfitted(part, column))) / 2 + floorOf(m, P));
  const errors = (point) => point.map((z, c) => all.map(({u, targets}) => dot(u, z) - targets[c]));
  const loss = (point) => errors(point).reduce((sum, column) => sum + column.reduce((part, value, i) => part + shares[i] * value * value, 0), 0) / 2 + mean(rests);
  const best = minimiser(all, shares, Z, errors), smoothness = (best.spectrum[0] ?? 0) ** 2 * (1 + 64 * EPS);  // X_m^T X_m is made of the same directions
  if (!drawn) return {floor: loss(best.point), smoothness};
  const even = all.map(() => 1 / T), centre = minimiser(all, even, Z, errors), solution = differences(centre.point, Z);
  const misplaced = (weights, {point, spectrum}) => misplacement(all, weights, spectrum, differences(point, Z), solution, errors(point), turned), off = misplaced(even, centre);
  /** The mean of |c_m|^2 over the tasks, from above. */
  const noiseAt = (point, moved) => {
    const sums = new Float64Array(T);
    for (const column of errors(point)) column.forEach((value, i) => { sums[all[i].m] += value * value; });
    return sums.reduce((sum, value) => sum + (Math.sqrt(value) * (1 + 64 * EPS) + moved) ** 2, 0) / T;
  };
  const slope = errors(centre.point).map((column) => column.reduce((sum, value, i) => sum.map((old, a) => old + shares[i] * value * all[i].u[a]), new Float64Array(P.D)));
  return {
    floor: loss(best.point), smoothness, noise: noiseAt(best.point, misplaced(shares, best)), centre_loss: raised(2 * loss(centre.point), Math.sqrt(smoothness) * off) / 2,
    centre_slope: Math.sqrt(squares(slope)) * (1 + 64 * EPS) + smoothness * off, centre_dist_sq: raised(squares(differences(Z, centre.point)), off),
    centre_noise: noiseAt(centre.point, off),
  };
}

/** The directions u of all tasks m, with their singular values and the targets of each output. */
const allDirections = (P) => P.parts.flatMap(({span, sigma, left, start}, m) => span.map((u, i) => ({
  u, m, sigma: sigma[i], targets: P.E.map((column) => left[i].reduce((sum, value, n) => sum + value * column[start + n], 0) / sigma[i]),
})));

/** The part of the labels of a task that none of its directions reaches. */
function unfitted({left, start, end}, column) {
  const rest = column.slice(start, end);
  for (const one of left) { const along = dot(one, rest); one.forEach((value, n) => { rest[n] -= along * value; }); }
  return rest;
}

/** The point nearest to the start that minimises the weighted squares of the errors, for each output, and the singular values that decide it. */
function minimiser(all, weights, start, errors) {
  const {solve, spectrum} = leastSquares(all.map(({u}, i) => u.map((value) => value * Math.sqrt(weights[i])))), missed = errors(start);
  const point = start.map((z, c) => { const step = solve(missed[c].map((value, i) => -Math.sqrt(weights[i]) * value)); return z.map((value, a) => value + step[a]); });
  return {point, spectrum};
}

/** By how much rounding may have moved a minimiser, to first order (Wedin 1973). */
function misplacement(all, weights, spectrum, point, solution, missed, turned) {
  const columns = all[0].u.length, least = spectrum.findLast((value) => value > Math.max(all.length, columns) * EPS * spectrum[0]) ?? 1;
  const unit = 4 * (Math.max(...turned) + (8 + Math.sqrt(all.length * columns)) * EPS), size = (vectors) => Math.sqrt(squares(vectors));
  const rest = Math.sqrt(missed.reduce((sum, column) => sum + column.reduce((part, value, i) => part + weights[i] * value * value, 0), 0));
  return unit * spectrum[0] / least * (size(point) + size(differences(point, solution)) + size(solution) + rest / least);
}

const raised = (square, off) => (Math.sqrt(square) * (1 + 64 * EPS) + off) ** 2;
