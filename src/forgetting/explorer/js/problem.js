// Expected loss and forgetting of continual linear models, exactly; docs/explorer.md names the recursions.
//
// A step on task m moves the error z = w - c to A_m z + B_m e_m, where e_m = y_m - X_m c are the labels seen from the
// centre c. Tasks with a common solution have c = w* and e = 0. Otherwise, with label noise and with decay, second
// moments carry W = sum z z^T, Y = sum z e^T and h, the mass of H = sum e e^T; sums are over outputs, and label noise is
// one output for each label. All of it is in a basis in which small angles are small coordinates (`pivotedBasis`).

import {complement, decompose, dot, leastSquares, norm, pivotedBasis, product, transpose, zeros} from "./linear.js";

export const EPS = 2 ** -52;
export const LARGEST_VALUE = 1e250;  // of a loss, at which a computation ends

/** The strength of ridge in step t; named strengths depend on the number of steps and on the largest norm. */
function strength({kind, lam, horizon}, radius, t) {
  const size = radius ** 2 || 1;
  if (kind === "ridge-fixed") return size * Math.max(1, Math.log(horizon));
  if (kind === "ridge-increasing") return 13 / 3 * size * (horizon + 1) / (horizon - t + 2);
  return lam;
}

/** 1 - gain and gain / sigma of a scheme for a singular value, lam being the strength of ridge. */
function gains({kind, eta}, lam, sigma) {
  if (kind === "sgd") return [1 - eta, eta / sigma];
  if (kind.startsWith("ridge")) return [lam / (sigma * sigma + lam), sigma / (sigma * sigma + lam)];
  return [0, 1 / sigma];
}

/** What a step makes of the error on a task: alpha times what the gains leave, and the part of the labels. */
function stepOn({right, left, rest, sigma, X}, scheme, lam, alpha) {
  const D = right.length || rest.length ? (right[0] ?? rest[0]).length : 0, A = zeros(D, D), B = zeros(D, X.length);
  for (const direction of rest) for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) A[a][b] += direction[a] * direction[b];
  sigma.forEach((value, i) => {
    const [kept, over] = gains(scheme, lam, value);
    for (let a = 0; a < D; a++) {
      for (let b = 0; b < D; b++) A[a][b] += kept * right[i][a] * right[i][b];
      for (let n = 0; n < X.length; n++) B[a][n] += over * right[i][a] * left[i][n];
    }
  });
  for (const row of A) for (let b = 0; b < D; b++) row[b] *= alpha;
  return {A, B};
}

/** What the recursions need: problem = {dim, tasks: [rows of X_m], w: columns or null, labels: columns or null}. */
export function prepare(problem, scheme, noise = 0) {
  const tasks = problem.tasks.map((X) => {
    const {sigma, right} = decompose(X), limit = Math.max(X.length, problem.dim) * EPS * Math.max(...sigma);
    return {X, rank: sigma.filter((value) => value > limit).length, norm: Math.max(0, ...sigma), span: right.filter((_, i) => sigma[i] > limit)};
  });
  const rows = tasks.flatMap(({span}) => span);
  const basis = pivotedBasis(rows, 8 * Math.max(rows.length, problem.dim) * EPS), D = basis.length;
  const inBasis = transpose(basis, problem.dim).length ? transpose(basis, problem.dim) : zeros(problem.dim, 0);
  const alpha = scheme.alpha ?? 1;
  let first = 0;
  const plain = tasks.map(({X, rank, norm: size}) => {
    const local = product(X.map((row) => Float64Array.from(row)), inBasis), {left, sigma, right} = decompose(local);
    const kept = Array.from(sigma.keys()).filter((i) => sigma[i] > Math.max(X.length, problem.dim) * EPS * Math.max(...sigma));
    const span = kept.map((i) => right[i]), start = first;
    first += X.length;
    return {
      X: local, span, right: span, rest: complement(span, D), sigma: kept.map((i) => sigma[i]), left: kept.map((i) => left.map((row) => row[i])),
      rank, norm: size, start, end: first,
    };
  });
  const radius = Math.max(0, ...plain.map((part) => part.norm)), alike = scheme.kind !== "ridge-increasing";
  const partAt = (m, t) => ({...plain[m], ...stepOn(plain[m], scheme, strength(scheme, radius, t), alpha)}), parts = plain.map((_, m) => partAt(m, 1));
  const N = first, all = parts.flatMap(({X}) => X), given = problem.labels, columns = given ? given.length : problem.w.length;
  const Z = [], E = [];
  for (let c = 0; c < columns; c++) {
    const solution = problem.w ? Float64Array.from(basis, (direction) => dot(direction, problem.w[c])) : null;
    const labels = given ? Float64Array.from(given[c]) : Float64Array.from(all, (row) => dot(row, solution));
    const centre = alpha !== 1 ? new Float64Array(D) : solution ?? leastSquares(all).solve(labels);
    Z.push(centre.map((value) => -value));
    E.push(solution && alpha === 1 ? new Float64Array(N) : labels.map((value, n) => value - dot(all[n], centre)));
  }
  if (noise > 0) {
    const fitted = alpha === 1 ? decompose(transpose(all, D)) : null, misfits = fitted ? complement(fitted.right, N) : [];
    for (let n = 0; n < N; n++) {
      const label = Float64Array.from({length: N}, (_, i) => i === n ? noise : 0);
      Z.push(Float64Array.from({length: D}, (_, a) => fitted ? -fitted.left[a].reduce((sum, value, i) => sum + value * noise * fitted.right[i][n] / fitted.sigma[i], 0) : 0));
      E.push(fitted ? label.map((_, i) => noise * misfits.reduce((sum, row) => sum + row[i] * row[n], 0)) : label);
    }
  }
  const affine = E.some((column) => column.some((value) => value !== 0));
  return {
    D, N, T: parts.length, parts, alike, partAt: alike ? (m) => parts[m] : partAt, radius, strength: scheme.kind.startsWith("ridge") && alike ? strength(scheme, radius, 1) : null, basis, Z, E, affine, columns, floors: problem.floors ?? null,
    keeps: !(scheme.kind === "kaczmarz" && alpha === 1 && !affine),  // whether a task has a loss right after it was learned
    symmetric: packed(D),
  };
}

/** Places of the entries of a symmetric matrix that is stored as its upper triangle. */
function packed(D) {
  const pairs = [];
  for (let a = 0; a < D; a++) for (let b = a; b < D; b++) pairs.push([a, b]);
  return {pairs, size: pairs.length};
}

/** What no w fits within a task. */
export const floorOf = (m, P) => P.floors ? P.floors[m] : 0;

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The values of a computation before its first step. */
export const emptied = (T, last) => ({loss: [], forgetting: [NaN], tasks: [], shares: [new Array(T).fill(0)], last});
