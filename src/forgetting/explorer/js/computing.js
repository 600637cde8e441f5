// All that the figures show, from a state.

import {DATA} from "./data.js";
import {covering, rowsAt, tightest, trivialValue} from "./bounds.js";
import {greedy, single} from "./orders.js";
import {dot} from "./linear.js";
import {prepare} from "./problem.js";
import {normal, random, shuffled} from "./random.js";
import {MOST_SUBSETS, affordable, withReplacement, withoutReplacement} from "./random_orders.js";
import {setting} from "./setting.js";
import {simulated} from "./simulated.js";
import {fromHash} from "./address.js";
import {problemOf, schemeOf} from "./state.js";

/** The rule that gives the task of step k in one order of the kind that the state has. */
function chooser(P, state) {
  const T = P.T, draw = random(state.draw * 104729 + 7);
  if (state.order === "with") return () => Math.floor(draw() * T);
  if (state.order === "without") { const order = shuffled(T, draw); return (k) => order[k - 1]; }
  if (state.order === "cyclic") return (k) => (k - 1) % T;
  if (state.order === "given") return (k) => state.given[k - 1];
  return greedy(P, state.order === "greedy-again");
}

/** The tasks of which the path is drawn: with noise in the labels, one draw of it. */
function drawnProblem(state) {
  const problem = problemOf(state), draw = random(state.draw * 7919 + 3);
  return state.noise ? {...problem, w: null, labels: [state.X.flatMap((rows) => rows.map((row) => dot(row, state.w[0]) + state.noise * normal(draw)))]} : problem;
}

/** How far the line of each task lies from the centre: its first label, less what its row gives there; 0 where the centre solves it. */
function shifts({tasks, labels}, centre) {
  let first = 0;
  return tasks.map((rows) => { first += rows.length; return labels ? labels[0][first - rows.length] - dot(rows[0], centre) : 0; });
}

/** All that the figures show, from the state. */
export function compute(state) {
  const learner = schemeOf(state), P = prepare(problemOf(state), learner, state.noise), shown = drawnProblem(state), seen = state.noise ? prepare(shown, learner) : P;
  const walk = single(seen, Math.min(state.most, 60), chooser(seen, state)), numbers = setting(P, state, state.d ?? null);
  const bounds = covering(numbers, state, P.parts.map((part) => part.norm)), solved = !state.labels && !state.noise && state.alpha === 1;
  let result;
  if (state.order === "with") result = withReplacement(P, affordable(P) < state.most ? DATA.steps.findLast((k) => k <= affordable(P)) : state.most);
  else if (state.order === "without") {
    const steady = solved && (state.scheme !== "sgd" || state.eta <= 2);
    result = P.T <= MOST_SUBSETS ? withoutReplacement(P, state.most) : simulated(P, state.most, state.draw, steady ? trivialValue(numbers, "forgetting") : 0);
  } else result = single(P, state.most, chooser(P, state));
  state.k = Math.min(state.k, result.last);
  const rows = rowsAt(bounds, numbers, state.k, state.quantity);
  const centre = Float64Array.from(state.alpha === 1 ? walk.path[0].map((_, i) => -P.basis.reduce((sum, direction, a) => sum + direction[i] * P.Z[0][a], 0)) : state.w[0]);
  return {P, result, walk, setting: numbers, bounds, rows, best: tightest(rows), centre, shifts: shifts(shown, centre)};
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
