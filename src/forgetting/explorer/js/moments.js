// Second moments of the error, and what a step makes of them.

import {dot, product, transpose, zeros} from "./linear.js";
import {floorOf} from "./problem.js";

/** Everything about second moments that does not depend on the state; the part of the steps is that of step 1. */
export function maps(P) {
  const {D, N, T, parts, symmetric: {pairs}} = P, H = zeros(N, N);
  const forms = parts.map(({X}) => Float64Array.from(pairs, ([a, b]) => {
    let sum = 0;
    for (const row of X) sum += row[a] * row[b];
    return a === b ? sum : 2 * sum;
  }));
  if (P.affine) for (const e of P.E) for (let i = 0; i < N; i++) if (e[i] !== 0) for (let j = 0; j < N; j++) H[i][j] += e[i] * e[j];
  return {P, p: 1 / T, forms, H, ...stepMaps(P, H), full: new Float64Array(D * D), half: new Float64Array(D * D), moved: zeros(D, N)};
}

/** The maps of step t, where steps differ. */
export function mapsAt(map, t) {
  if (map.P.alike || t === 1) return map;
  const P = {...map.P, parts: map.P.parts.map((_, m) => map.P.partAt(m, t))};
  return {...map, P, ...stepMaps(P, map.H)};
}

/** What depends on A_m and B_m: the mean Q of A_m W A_m^T on packed W, and what labels add. */
function stepMaps(P, H) {
  const {D, N, T, parts, symmetric: {pairs, size}} = P, p = 1 / T, Q = new Float64Array(size * size);
  for (const {A} of parts) for (let i = 0, at = 0; i < size; i++) {
    const one = A[pairs[i][0]], two = A[pairs[i][1]];
    for (let c = 0; c < D; c++) {
      Q[at++] += p * one[c] * two[c];
      for (let d = c + 1; d < D; d++) Q[at++] += p * (one[c] * two[d] + one[d] * two[c]);
    }
  }
  if (!P.affine) return {Q, BH: [], C: []};
  const BH = parts.map(({B, start, end}) => product(B, H.slice(start, end)));
  const C = parts.map(({B, start, end}, m) => product(BH[m].map((row) => row.subarray(start, end)), transpose(B, end - start)));
  const flatM = new Float64Array(D * D), coefficients = new Float64Array(D * D * N), flatB = new Float64Array(D * N);
  for (const {A, B, start, end} of parts) for (let a = 0; a < D; a++) {
    for (let b = 0; b < D; b++) {
      flatM[a * D + b] += p * A[a][b];
      coefficients.fill(A[a][b], (a * D + b) * N + start, (a * D + b) * N + end);
    }
    flatB.set(B[a], a * N + start);
  }
  const meanBH = new Float64Array(D * N), meanC = new Float64Array(size);
  for (const one of BH) for (let a = 0; a < D; a++) for (let n = 0; n < N; n++) meanBH[a * N + n] += p * one[a][n];
  for (const one of C) pairs.forEach(([a, b], i) => { meanC[i] += p * one[a][b]; });
  return {Q, BH, C, flatM, coefficients, flatB, meanBH, meanC, room: new Float64Array(D * N)};
}

export const startOf = ({P}) => {
  const {D, N, Z, E, symmetric: {pairs}} = P;
  const W = Float64Array.from(pairs, ([a, b]) => Z.reduce((sum, z) => sum + z[a] * z[b], 0)), Y = zeros(P.affine ? D : 0, N);
  if (P.affine) Z.forEach((z, c) => { for (let a = 0; a < D; a++) if (z[a] !== 0) for (let n = 0; n < N; n++) Y[a][n] += z[a] * E[c][n]; });
  return {h: 1, W, Y};
};

export const nothing = ({P}) => ({h: 0, W: new Float64Array(P.symmetric.size), Y: zeros(P.affine ? P.D : 0, P.N)});

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
export function learn(map, m, state) {
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

export function add(into, state, weight) {
  into.h += weight * state.h;
  for (let i = 0; i < into.W.length; i++) into.W[i] += weight * state.W[i];
  state.Y.forEach((row, a) => { for (let n = 0; n < row.length; n++) into.Y[a][n] += weight * row[n]; });
}

export function lossOf(map, m, state) {
  const {P, H} = map, {X, start} = P.parts[m];
  let sum = dot(map.forms[m], state.W);
  if (P.affine) X.forEach((row, i) => {
    let along = 0;
    for (let a = 0; a < P.D; a++) along += row[a] * state.Y[a][start + i];
    sum += state.h * H[start + i][start + i] - 2 * along;
  });
  return sum / 2 + state.h * floorOf(m, P);
}
