// Second moments of the error over random orders, with and without replacement.

import {dot, product, transpose, zeros} from "./linear.js";
import {emptied, floorOf, mean} from "./problem.js";

export const MOST_SUBSETS = 8;  // tasks, up to which all subsets are walked through

/** Everything about second moments that does not depend on the state. */
function maps(P) {
  const {D, N, T, parts, symmetric: {pairs, size}} = P, p = 1 / T;
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
  const {D, N, Z, E, symmetric: {pairs}} = P;
  const W = Float64Array.from(pairs, ([a, b]) => Z.reduce((sum, z) => sum + z[a] * z[b], 0)), Y = zeros(P.affine ? D : 0, N);
  if (P.affine) Z.forEach((z, c) => { for (let a = 0; a < D; a++) if (z[a] !== 0) for (let n = 0; n < N; n++) Y[a][n] += z[a] * E[c][n]; });
  return {h: 1, W, Y};
};

const nothing = ({P}) => ({h: 0, W: new Float64Array(P.symmetric.size), Y: zeros(P.affine ? P.D : 0, P.N)});

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
  const {P, full, half: moved} = map, {D} = P, {A} = P.parts[m], W = new Float64Array(P.symmetric.size), from = state.W;
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
  const {P} = map, {T, D, N} = P, size = P.symmetric.size;
  return {h: new Float64Array(T), W: new Float64Array(size * T), Y: P.affine ? P.parts.map(() => new Float64Array(D * N)) : []};
}

/** The mean over tasks of what a step makes of the moments of all visits, into `made`. */
function drawn(map, from, made) {
  const {P, Q, p} = map, {T, D, N} = P, size = P.symmetric.size, sums = new Float64Array(T);
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
  return sum / 2 + seen.h[m] * floorOf(m, P);
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
  return sum / 2 + state.h * floorOf(m, P);
}

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
