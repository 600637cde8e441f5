// All that the figures show, from a state.

import {DATA} from "./data.js";
import {covering, rowsAt, setting, tightest, trivialValue} from "./bounds.js";
import {MOST_SUBSETS, affordable, withReplacement, withoutReplacement} from "./moments.js";
import {greedy, simulated, single} from "./orders.js";
import {prepare} from "./problem.js";
import {random, shuffled} from "./random.js";
import {fromHash, problemOf, schemeOf} from "./state.js";

/** The rule that gives the task of step k in one order of the kind that the state has. */
function chooser(P, state) {
  const T = P.T, draw = random(state.draw * 104729 + 7);
  if (state.order === "with") return () => Math.floor(draw() * T);
  if (state.order === "without") { const order = shuffled(T, draw); return (k) => order[k - 1]; }
  if (state.order === "cyclic") return (k) => (k - 1) % T;
  if (state.order === "given") return (k) => state.given[k - 1];
  return greedy(P, state.order === "greedy-again");
}

/** All that the figures show, from the state. */
export function compute(state) {
  const P = prepare(problemOf(state), schemeOf(state), state.noise), plain = state.noise ? prepare(problemOf(state), schemeOf(state)) : P;
  const walk = single(plain, Math.min(state.most, 60), chooser(plain, state)), numbers = setting(P, state, state.d ?? null);
  const common = !state.labels && !state.noise && state.alpha === 1, bounds = common ? covering(numbers, state, P.parts.map((part) => part.norm)) : [];
  let result;
  if (state.order === "with") result = withReplacement(P, affordable(P) < state.most ? DATA.steps.findLast((k) => k <= affordable(P)) : state.most);
  else if (state.order === "without") {
    const steady = common && (state.scheme !== "sgd" || state.eta <= 2);
    result = P.T <= MOST_SUBSETS ? withoutReplacement(P, state.most) : simulated(P, state.most, state.draw, steady ? trivialValue(numbers, "forgetting") : 0);
  } else result = single(P, state.most, chooser(P, state));
  state.k = Math.min(state.k, result.last);
  const rows = rowsAt(bounds, numbers, state.k, state.quantity), centre = walk.path[0].map((_, i) => -P.basis.reduce((sum, direction, a) => sum + direction[i] * plain.Z[0][a], 0));
  return {P, result, walk, setting: numbers, bounds, rows, best: tightest(rows), centre: state.alpha === 1 ? centre : Float64Array.from(state.w[0])};
}

/** The values of the state that an address holds, and its bounds at each k of the page, by their keys. */
export function at(hash) {
  const state = fromHash(hash), made = compute(state), ks = DATA.steps.filter((k) => k <= made.result.last), bounds = {};
  for (const quantity of ["loss", "forgetting"]) for (const k of ks) for (const {bound, value} of rowsAt(made.bounds, made.setting, k, quantity))
    (bounds[bound.key] ??= []).push([k, value]);
  const best = ks.map((k) => tightest(rowsAt(made.bounds, made.setting, k, state.quantity))?.bound.key ?? null);
  const {loss, forgetting, tasks, shares, how, lossInterval} = made.result;
  return {loss, forgetting, tasks, shares, how, lossInterval, bounds, best, ks, setting: made.setting, order: made.walk.order};
}
