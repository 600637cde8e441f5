// Expected values over random orders, with and without replacement, exactly: by second moments, weighted by visits.

import {add, learn, lossOf, maps, mapsAt, nothing, startOf} from "./moments.js";
import {LARGEST_VALUE, emptied, floorOf, mean} from "./problem.js";

export const MOST_SUBSETS = 8;  // tasks, up to which all subsets are walked through

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

/** The number of steps with replacement that take about 50 ms for tasks of this size. */
export function affordable({T, D, N, affine, alike}) {
  const size = D * (D + 1) / 2;
  return Math.max(20, Math.floor(15e6 / (T * ((alike ? 1 : 3) * (size * size + (affine ? 3 * D * D * N : 0)) + 1.5 * D ** 3))));
}

/** Draws with replacement, uniform over the tasks: values at k = 0, ..., last. */
export function withReplacement(P, last) {
  const first = maps(P), {T} = P, made = emptied(T, last), kept = new Array(T).fill(0);
  let map = first, now = startOf(map), seen = visits(map), next = visits(map);
  const read = () => { const losses = P.parts.map((_, m) => lossOf(map, m, now)); made.tasks.push(losses); made.loss.push(mean(losses)); };
  read();
  for (let k = 1; k <= last; k++) {
    map = mapsAt(first, k);
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
    if (!(made.loss[k] < LARGEST_VALUE)) { made.last = k; break; }
  }
  return {...made, how: "exact"};
}

/** Each task at most once, in random order: values at k = 0, ..., last <= T, over all subsets. */
export function withoutReplacement(P, last) {
  const always = maps(P), {T} = P, made = emptied(T, last), states = new Map([[0, {state: startOf(always), kept: new Array(T).fill(0)}]]);
  let level = states;
  const first = P.parts.map((_, m) => lossOf(always, m, level.get(0).state));
  made.tasks.push(first);
  made.loss.push(mean(first));
  for (let k = 1; k <= last; k++) {
    const next = new Map(), map = mapsAt(always, k);
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
