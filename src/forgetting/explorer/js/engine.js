// Expected loss and forgetting of continual linear models, exactly; docs/explorer.md names the recursions.
//
// A step on task m moves the error z = w - c to A_m z + B_m e_m, where e_m = y_m - X_m c are the labels seen from the
// centre c. Tasks with a common solution have c = w* and e = 0. Otherwise, with label noise and with decay, second
// moments carry W = sum z z^T, Y = sum z e^T and h, the mass of H = sum e e^T; sums are over outputs, and label noise is
// one output for each label. All of it is in a basis in which small angles are small coordinates (`pivotedBasis`).

import {complement, decompose, dot, leastSquares, norm, pivotedBasis, product, transpose, zeros} from "./linear.js";

export const EPS = 2 ** -52;
export const MOST_SUBSETS = 8;  // tasks, up to which all subsets are walked through

/** The number of simulated orders beyond that: as many as take about 20 ms, from 1000 to 10000. */
export const runsFor = ({T, D, N}) => Math.round(Math.min(Math.max(6e6 / (T * (D * D + N * D + 20 * T)), 1000), 10000) / 100) * 100;

/** 1 - gain and gain / sigma of a scheme for a singular value. */
function gains(scheme, sigma) {
  if (scheme.kind === "sgd") return [1 - scheme.eta, scheme.eta / sigma];
  if (scheme.kind === "ridge") return [scheme.lam / (sigma * sigma + scheme.lam), sigma / (sigma * sigma + scheme.lam)];
  return [0, 1 / sigma];
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
  const parts = tasks.map(({X, rank, norm: size}) => {
    const local = product(X.map((row) => Float64Array.from(row)), inBasis), {left, sigma, right} = decompose(local);
    const kept = Array.from(sigma.keys()).filter((i) => sigma[i] > Math.max(X.length, problem.dim) * EPS * Math.max(...sigma));
    const span = kept.map((i) => right[i]), rest = complement(span, D), A = zeros(D, D), B = zeros(D, X.length);
    for (const direction of rest) for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) A[a][b] += direction[a] * direction[b];
    kept.forEach((i) => {
      const [left_, over] = gains(scheme, sigma[i]);
      for (let a = 0; a < D; a++) {
        for (let b = 0; b < D; b++) A[a][b] += left_ * right[i][a] * right[i][b];
        for (let n = 0; n < X.length; n++) B[a][n] += over * right[i][a] * left[n][i];
      }
    });
    for (const row of A) for (let b = 0; b < D; b++) row[b] *= alpha;
    const start = first;
    first += X.length;
    return {X: local, A, B, span, rest, sigma: kept.map((i) => sigma[i]), rank, norm: size, start, end: first};
  });
  const N = first, all = parts.flatMap(({X}) => X), given = problem.labels, columns = given ? given.length : problem.w.length;
  const Z = [], E = [];
  for (let c = 0; c < columns; c++) {
    const solution = problem.w ? Float64Array.from(basis, (direction) => dot(direction, problem.w[c])) : null;
    const labels = given ? Float64Array.from(given[c]) : Float64Array.from(all, (row) => dot(row, solution));
    const centre = alpha !== 1 ? new Float64Array(D) : solution ?? leastSquares(all, labels);
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
    D, N, T: parts.length, parts, basis, Z, E, affine, columns, floors: problem.floors ?? null,
    keeps: !(scheme.kind === "kaczmarz" && alpha === 1 && !affine),  // whether a task has a loss right after it was learned
    random: packed(D),
  };
}

/** Places of the entries of a symmetric matrix that is stored as its upper triangle. */
function packed(D) {
  const place = zeros(D, D), pairs = [];
  for (let a = 0; a < D; a++) for (let b = a; b < D; b++) { place[a][b] = place[b][a] = pairs.length; pairs.push([a, b]); }
  return {place, pairs, size: pairs.length};
}

const half = (m, P) => P.floors ? P.floors[m] : 0;

// ------------------------------------------------------------------------------------------------------ second moments

/** Everything about second moments that does not depend on the state. */
function maps(P) {
  const {D, N, T, parts, random: {pairs, size}} = P, p = 1 / T;
  const forms = parts.map(({X}) => Float64Array.from(pairs, ([a, b]) => {
    let sum = 0;
    for (const row of X) sum += row[a] * row[b];
    return a === b ? sum : 2 * sum;
  }));
  const Q = new Float64Array(size * size);
  for (const {A} of parts) pairs.forEach(([a, b], i) => {
    const one = A[a], two = A[b];
    pairs.forEach(([c, d], j) => { Q[i * size + j] += p * (c === d ? one[c] * two[c] : one[c] * two[d] + one[d] * two[c]); });
  });
  const H = zeros(N, N);
  if (P.affine) for (const e of P.E) for (let i = 0; i < N; i++) if (e[i] !== 0) for (let j = 0; j < N; j++) H[i][j] += e[i] * e[j];
  const BH = P.affine ? parts.map(({B, start, end}) => product(B, H.slice(start, end))) : [];
  const C = P.affine ? parts.map(({B, start, end}, m) => product(BH[m].map((row) => row.subarray(start, end)), transpose(B, end - start))) : [];
  const M = zeros(D, D);
  for (const {A} of parts) for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) M[a][b] += p * A[a][b];
  const flat = (rows) => Float64Array.from(rows.flatMap((row) => [...row])), sum = (all) => all.reduce((one, two) => one.map((value, i) => value + two[i]));
  const affine = P.affine && {
    coefficients: Float64Array.from({length: D * D}, (_, i) => i).reduce((all, i) => { let n = 0; for (const {A, start, end} of parts) for (let c = start; c < end; c++) all[i * N + n++] = A[Math.floor(i / D)][i % D]; return all; }, new Float64Array(D * D * N)), flatB: flat(zeros(D, 0).map((_, a) => parts.flatMap(({B}) => [...B[a]]))), flatM: flat(M),
    meanBH: sum(BH.map(flat)).map((value) => p * value), meanC: sum(C.map((one) => Float64Array.from(pairs, ([a, b]) => one[a][b]))).map((value) => p * value), room: new Float64Array(D * N),
  };
  return {P, p, forms, Q, H, BH, C, M, ...affine, full: new Float64Array(D * D), half: new Float64Array(D * D), moved: zeros(D, N)};
}

const start = ({P}) => {
  const {D, N, Z, E, random: {pairs}} = P;
  const W = Float64Array.from(pairs, ([a, b]) => Z.reduce((sum, z) => sum + z[a] * z[b], 0)), Y = zeros(P.affine ? D : 0, N);
  if (P.affine) Z.forEach((z, c) => { for (let a = 0; a < D; a++) if (z[a] !== 0) for (let n = 0; n < N; n++) Y[a][n] += z[a] * E[c][n]; });
  return {h: 1, W, Y};
};

const nothing = ({P}) => ({h: 0, W: new Float64Array(P.random.size), Y: zeros(P.affine ? P.D : 0, P.N)});

/** A Y_m B^T and its transpose, and h B H B^T, added to packed W with a weight. */
function addCross(map, m, state, weight, W) {
  const {P, moved} = map, {D} = P, {A, B, start, end} = P.parts[m], C = map.C[m];
  for (let a = 0; a < D; a++) {
    const row = moved[a].fill(0), from = A[a];
    for (let b = 0; b < D; b++) {
      const factor = from[b], Y = state.Y[b];
      if (factor !== 0) for (let n = start; n < end; n++) row[n - start] += factor * Y[n];
    }
  }
  for (let a = 0, i = 0; a < D; a++)
    for (let b = a; b < D; b++, i++) {
      let sum = state.h * C[a][b];
      for (let n = 0; n < end - start; n++) sum += moved[a][n] * B[b][n] + moved[b][n] * B[a][n];
      W[i] += weight * sum;
    }
}

/** The moments right after task m was learned. */
function learn(map, m, state) {
  const {P, full, half: moved} = map, {D} = P, {A} = P.parts[m], W = new Float64Array(P.random.size), from = state.W;
  for (let a = 0, i = 0; a < D; a++) for (let b = a; b < D; b++, i++) full[a * D + b] = full[b * D + a] = from[i];
  for (let a = 0; a < D; a++) {
    const row = A[a];
    for (let b = 0; b < D; b++) {
      let sum = 0;
      for (let c = 0, at = b * D; c < D; c++) sum += row[c] * full[at++];
      moved[a * D + b] = sum;
    }
  }
  for (let a = 0, i = 0; a < D; a++)
    for (let b = a; b < D; b++, i++) {
      const row = A[b];
      let sum = 0;
      for (let c = 0, at = a * D; c < D; c++) sum += moved[at++] * row[c];
      W[i] = sum;
    }
  if (!P.affine) return {h: state.h, W, Y: []};
  addCross(map, m, state, 1, W);
  const Y = product(A, state.Y);
  Y.forEach((row, a) => { for (let n = 0; n < P.N; n++) row[n] += state.h * map.BH[m][a][n]; });
  return {h: state.h, W, Y};
}

/** Moments of each task's visits: entry j of W of task m at j T + m, so that one walk through Q serves all tasks. */
function visits(map) {
  const {P} = map, {T, D, N} = P, size = P.random.size;
  return {h: new Float64Array(T), W: new Float64Array(size * T), Y: P.affine ? P.parts.map(() => new Float64Array(D * N)) : []};
}

/** The mean over tasks of what a step makes of the moments of all visits, into `made`. */
function drawn(map, from, made) {
  const {P, Q, p} = map, {T, D, N} = P, size = P.random.size, sums = new Float64Array(T);
  for (let i = 0; i < size; i++) {
    sums.fill(0);
    for (let j = 0; j < size; j++) {
      const factor = Q[i * size + j], at = j * T;
      if (factor !== 0) for (let m = 0; m < T; m++) sums[m] += factor * from.W[at + m];
    }
    for (let m = 0; m < T; m++) made.W[i * T + m] = sums[m];
  }
  if (!P.affine) return;
  const {coefficients, flatB, meanBH, meanC, flatM, room} = map;
  from.Y.forEach((Y, m) => {
    const h = from.h[m], next = made.Y[m];
    made.h[m] = h;
    room.fill(0);  // A_l Y for the columns of each task l
    for (let a = 0, at = 0; a < D; a++) for (let b = 0; b < D; b++)
      for (let n = 0, to = a * N, in_ = b * N; n < N; n++) room[to++] += coefficients[at++] * Y[in_++];
    for (let a = 0, i = 0; a < D; a++) for (let b = a; b < D; b++, i++) {
      let sum = h * meanC[i] / p;
      for (let n = 0; n < N; n++) sum += room[a * N + n] * flatB[b * N + n] + room[b * N + n] * flatB[a * N + n];
      made.W[i * T + m] += p * sum;
    }
    for (let i = 0; i < D * N; i++) next[i] = h * meanBH[i];
    for (let a = 0; a < D; a++) for (let b = 0; b < D; b++) {
      const factor = flatM[a * D + b];
      if (factor !== 0) for (let n = 0; n < N; n++) next[a * N + n] += factor * Y[b * N + n];
    }
  });
}

/** Adds a visit of task m. */
function visit(map, seen, m, state) {
  const {P: {T, N}, p} = map;
  seen.h[m] += p * state.h;
  for (let i = 0; i < state.W.length; i++) seen.W[i * T + m] += p * state.W[i];
  state.Y.forEach((row, a) => { for (let n = 0; n < N; n++) seen.Y[m][a * N + n] += p * row[n]; });
}

/** The expected loss of task m on its visits. */
function lossOfVisits({P, forms, H}, seen, m) {
  const {T, D, N} = P, {X, start} = P.parts[m], form = forms[m];
  let sum = 0;
  for (let i = 0; i < form.length; i++) sum += form[i] * seen.W[i * T + m];
  if (P.affine) X.forEach((row, i) => {
    let along = 0;
    for (let a = 0; a < D; a++) along += row[a] * seen.Y[m][a * N + start + i];
    sum += seen.h[m] * H[start + i][start + i] - 2 * along;
  });
  return sum / 2 + seen.h[m] * half(m, P);
}

function add(into, state, weight) {
  into.h += weight * state.h;
  for (let i = 0; i < into.W.length; i++) into.W[i] += weight * state.W[i];
  state.Y.forEach((row, a) => { for (let n = 0; n < row.length; n++) into.Y[a][n] += weight * row[n]; });
}

function lossOf(map, m, state) {
  const {P, H} = map, {X, start} = P.parts[m];
  let sum = dot(map.forms[m], state.W);
  if (P.affine) X.forEach((row, i) => {
    let along = 0;
    for (let a = 0; a < P.D; a++) along += row[a] * state.Y[a][start + i];
    sum += state.h * H[start + i][start + i] - 2 * along;
  });
  return sum / 2 + state.h * half(m, P);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const emptied = (T, last) => ({loss: [], forgetting: [NaN], tasks: [], shares: [new Array(T).fill(0)], last});

/** The number of steps with replacement that take about 50 ms for tasks of this size. */
export function affordable({T, D, N, affine}) {
  const size = D * (D + 1) / 2;
  return Math.max(20, Math.floor(15e6 / (T * (size * size + 1.5 * D ** 3 + (affine ? 3 * D * D * N : 0)))));
}

/** Draws with replacement, uniform over the tasks: values at k = 0, ..., last. */
export function withReplacement(P, last) {
  const map = maps(P), {T} = P, made = emptied(T, last), kept = new Array(T).fill(0);
  let now = start(map), seen = visits(map), next = visits(map);
  const read = () => { const losses = P.parts.map((_, m) => lossOf(map, m, now)); made.tasks.push(losses); made.loss.push(mean(losses)); };
  read();
  for (let k = 1; k <= last; k++) {
    const learned = P.parts.map((_, m) => learn(map, m, now));
    now = nothing(map);
    if (k > 1) { drawn(map, seen, next); [seen, next] = [next, seen]; }
    learned.forEach((state, m) => {
      visit(map, seen, m, state);
      add(now, state, map.p);
      if (P.keeps) kept[m] += map.p * lossOf(map, m, state);
    });
    const shares = learned.map((_, m) => k > 1 ? (lossOfVisits(map, seen, m) - kept[m]) / k : 0);
    made.shares.push(shares);
    made.forgetting.push(shares.reduce((sum, value) => sum + value, 0));
    read();
  }
  return {...made, how: "exact"};
}

/** Each task at most once, in random order: values at k = 0, ..., last <= T, over all subsets. */
export function withoutReplacement(P, last) {
  const map = maps(P), {T} = P, made = emptied(T, last), states = new Map([[0, {state: start(map), kept: new Array(T).fill(0)}]]);
  let level = states;
  const first = P.parts.map((_, m) => lossOf(map, m, level.get(0).state));
  made.tasks.push(first);
  made.loss.push(mean(first));
  for (let k = 1; k <= last; k++) {
    const next = new Map();
    for (const [mask, {state, kept}] of level) for (let m = 0; m < T; m++) {
      if (mask >> m & 1) continue;
      const learned = learn(map, m, state), to = mask | 1 << m;
      if (!next.has(to)) next.set(to, {state: nothing(map), kept: new Array(T).fill(0)});
      const sum = next.get(to);
      add(sum.state, learned, 1 / k);
      if (P.keeps) kept.forEach((value, l) => { sum.kept[l] += (value + (l === m ? lossOf(map, m, learned) : 0)) / k; });
    }
    level = next;
    const losses = new Array(T).fill(0), shares = new Array(T).fill(0), part = 1 / level.size;
    for (const [mask, {state, kept}] of level) for (let m = 0; m < T; m++) {
      const loss = lossOf(map, m, state);
      losses[m] += part * loss;
      if (k > 1 && mask >> m & 1) shares[m] += part * (loss - kept[m]) / k;
    }
    made.tasks.push(losses);
    made.loss.push(mean(losses));
    made.shares.push(shares);
    made.forgetting.push(shares.reduce((sum, value) => sum + value, 0));
  }
  return {...made, how: "exact"};
}

// ---------------------------------------------------------------------------------------------------------- single runs

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
  return sum / 2 + half(m, P);
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

/** Random numbers in [0, 1) from a whole number (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let value = Math.imul(state ^ state >>> 15, state | 1);
    value ^= value + Math.imul(value ^ value >>> 7, value | 61);
    return ((value ^ value >>> 14) >>> 0) / 2 ** 32;
  };
}

/** A standard normal number from uniform ones. */
export const normal = (draw) => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());

export function shuffled(count, draw) {
  const order = Array.from({length: count}, (_, i) => i);
  for (let i = count - 1; i > 0; i--) { const j = Math.floor(draw() * (i + 1)); [order[i], order[j]] = [order[j], order[i]]; }
  return order;
}

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
        losses[m] = sum / 2 + half(m, P);
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
