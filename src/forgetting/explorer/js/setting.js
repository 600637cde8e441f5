// The numbers that bounds depend on, as in `fg.bounds.Setting`.

import {dot, norm, singularValues, zeros} from "./linear.js";
import {misfitOf} from "./misfit.js";
import {EPS} from "./problem.js";

/** The parameters of prepared tasks under an ordering and a scheme, named as in `fg.bounds.Setting`. */
export function setting(P, {order, scheme, eta, labels, noise, most, turned: given}, d) {
  const ranks = P.parts.map(({rank}) => rank), norms = P.parts.map((part) => part.norm), T = P.T;
  const total = (values) => values.reduce((sum, value) => sum + value, 0), step = scheme === "kaczmarz" ? 1 : scheme === "sgd" ? eta : null;
  const turned = given ?? turnedOf(P, d ?? P.D), noisy = noise > 0, drawn = order === "with";
  const unsolved = labels || noisy && P.N > P.D;  // as many labels as dimensions are solved by some w, whatever they are
  const made = {
    T, d, rank_avg: total(ranks) / T, rank_max: Math.max(...ranks), rank_joint: P.D, radius: P.radius,
    dist_sq: P.Z.slice(0, noisy ? P.Z.length : P.columns).reduce((sum, z) => sum + dot(z, z), 0) * (1 + 16 * EPS),
    radius_sq_mean: total(norms.map((value) => value * value)) / T, eta: step, beta: step === null ? null : 1, penalty: P.strength,
    weight_ratio: null, rarest_draw: null, spectral_gap: null, contraction: null, rank_weighted: null, mean_projection: null,
    sigma: null, G: null, previous_loss: null, from_zero: true, programs: false, problem: "regression",
    misfit: unsolved ? misfitOf(P, turned, drawn) : null, horizon: most,
  };
  return drawn ? {...made, ...ofDraws(P, made, turned)} : made;
}

/** For each task, by how much rounding may have turned its row space: `Geometry.turned` of the package. */
function turnedOf(P, d) {
  const distinct = [...new Map(P.parts.map((part) => [JSON.stringify(part.X.map((row) => [...row])), part])).values()];
  const directions = distinct.reduce((sum, {sigma}) => sum + sigma.length, 0), slip = (4 + Math.sqrt(d + directions) / 4) * EPS;
  const spans = P.parts.map(({sigma}) => sigma.length ? Math.max(...sigma) / Math.min(...sigma) : 1);
  const exact = roundedOnce(P, distinct, Math.max(...spans), d);
  return spans.map((span) => 2 * slip * (exact ? 1 : span));
}

/** Whether the package computes the row spaces of these tasks with 31 digits: where float64 would lose more than two. */
function roundedOnce({D, Z}, distinct, span, d) {
  const all = singularValues(distinct.flatMap((part) => part.span)), products = distinct.reduce((sum, {X, sigma}) => {
    const short = Math.min(X.length, D);
    return sum + (25 * short * short + X.length * D) * (D + Z.length - 1) + Z.length * sigma.length * D * D + (D < d ? 3 * X.length * D * d : 0);
  }, 0);
  return span * all[0] / all[D - 1] > 100 && products < 2e6;
}

/** What depends on the probabilities 1/T: the mean of the projections onto the row spaces.
 *
 * Numbers are moved by what rounding may do to them, as in `Geometry.mixing` of the package: the gap is no larger than
 * the true one, and all else no smaller.
 */
function ofDraws(P, {radius, rank_avg}, turned) {
  const {T, D} = P, part = 1 / Math.sqrt(T), scaled = (vectors) => vectors.map((u) => u.map((value) => value * part));
  const rows = P.parts.flatMap(({span}) => scaled(span)), mean = zeros(D, D);
  for (const row of rows) for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) mean[a][b] += row[a] * row[b];
  const off = 2 * turned.reduce((sum, value) => sum + value, 0) / T + 8 * D * EPS;
  const root = rows.length >= D && D ? singularValues(rows)[D - 1] : 0;
  let gap = root ** 2 - off;
  if (gap < 1e-3) gap = Math.max(0, root - norm(turned) * part) ** 2;
  gap = Math.min(1, gap);
  let contraction = 1 - gap;
  if (gap > 0.5) {  // the difference would lose digits
    const short = P.parts.map(({rest}, m) => m).filter((m) => P.parts[m].rest.length), rests = short.flatMap((m) => scaled(P.parts[m].rest));
    contraction = Math.min(contraction, ((1 + 16 * EPS) * (rests.length ? singularValues(rests)[0] : 0) + norm(short.map((m) => turned[m])) * part) ** 2);
  }
  return {
    weight_ratio: radius * radius, rarest_draw: 1, spectral_gap: gap, contraction, rank_weighted: rank_avg,
    mean_projection: norm(mean.flatMap((row) => [...row])) + Math.sqrt(D) * off,
  };
}
