// Which bounds apply, and their values. BOUNDS was translated from the registry by Python, but for programs: those are here.

import {DATA, BOUNDS, stepIndex} from "./data.js";
import {EPS} from "./problem.js";

export const isClose = (a, b, relative, absolute) => Math.abs(a - b) <= Math.max(relative * Math.max(Math.abs(a), Math.abs(b)), absolute);
export const fresh = (n) => DATA.fresh[n];
const peak = (n) => n ? Math.exp(-n * Math.log1p(1 / n)) : 1;  // (n + 1) times the largest y (1 - y)^n

/** The lines whose least value at a size bounds the loss of a fresh task. */
function linesOf(form, n) {
  if (n < DATA.lines[form].length) return DATA.lines[form][n];
  const more = DATA.beyond[form] / (n + 1);
  return [[0, form === "rank" ? peak(n) * (1 + 16 * EPS) : 1], ...DATA.longLines[form].map(([share, most]) => [share, most + more])];
}

/** The smallest bound on the loss of a fresh task after n draws: `least_fresh` of the package. */
export function leastFresh(s, n) {
  const sizes = [], span = s.rank_joint;
  sizes.push(["rank", n, Math.sqrt(span)]);
  if (s.rank_weighted !== null && n) {
    let rest = Math.max(span - s.rank_weighted, 0);
    if (s.mean_projection !== null) rest = Math.min(rest, Math.max(rest - s.rank_weighted + s.mean_projection ** 2, 0) + 1e-14 * span);
    sizes.push(["rank", n - 1, Math.sqrt(rest)]);
  }
  if (s.mean_projection !== null) sizes.push(["mean", n, (n + 1) * s.mean_projection]);
  let smallest = fresh(n);
  for (const [form, draws, size] of sizes)
    for (const [share, most] of linesOf(form, draws)) smallest = Math.min(smallest, (share + size * most) / (draws + 1));
  return smallest;
}

/** The same with a spectral gap: `gap_rate` of the package. */
export function gapRate(s, k) {
  const gap = s.spectral_gap, middle = gap > 0 && gap < 1 ? Math.round(-1 / Math.log1p(-gap)) : gap ? 0 : k;
  const draws = new Set([k, ...[-1, 0, 1].map((i) => Math.min(Math.max(middle + i, 0), k))]), last = DATA.lines.rank.length - 1;
  if (middle <= last) for (let n = 0; n <= Math.min(k, last); n++) draws.add(n);
  const left = (n) => BOUNDS.powerLeft(gap, s.contraction, k - n);
  let best = null, least = Infinity;
  for (const n of draws) { const value = left(n) * fresh(n); if (value < least) [best, least] = [n, value]; }
  return Math.min(...[best, k].map((n) => left(n) * leastFresh(s, n)));
}

// ------------------------------------------------------------------------------------------------------------ the bounds

/** The names under which bounds cover a scheme, and those that hold at the last k alone, to which strengths are fitted. */
function schemeTags({scheme, eta, alpha}) {
  if (alpha !== 1) return [new Set(["any"]), new Set()];
  const tags = new Set(DATA.schemes[scheme === "sgd" && eta > 2 ? "sgd-long" : scheme]), fitted = new Set(DATA.fitted[scheme]);
  if (scheme === "sgd" && eta === 1) for (const tag of DATA.schemes.kaczmarz) tags.add(tag);
  if (scheme === "ridge-fixed") for (const tag of DATA.schemes.ridge) tags.add(tag);
  return [tags, fitted];
}

/** The bounds that cover an ordering and a scheme, as functions of k, for the numbers of a setting. */
export function covering(s, state, norms) {
  const tags = new Set(DATA.tags[state.order]), [learned, fitted] = schemeTags(state);
  const most = Math.max(...norms), same = norms.every((value) => Math.abs(value - most) <= 1e-12 * most);
  if (state.order === "with" && same) tags.add("norm-weighted");
  const known = (name) => name === "span" || s[name] !== null && s[name] !== undefined;
  return BOUNDS.list.filter((bound) =>
    bound.orderings.some((name) => tags.has(name)) && bound.schemes.some((name) => learned.has(name)) && (s.misfit === null || bound.noisy) && bound.needs.every(known)
  ).map((bound) => bound.schemes.some((name) => learned.has(name) && !fitted.has(name)) ? bound : {...bound, atLast: true});
}

/** The value of a bound after k steps, or NaN where it does not cover k. */
export function valueOf(bound, s, k) {
  const first = bound.first === "T^2" ? s.T ** 2 : bound.first, last = {T: s.T, "T-1": s.T - 1}[bound.last] ?? Infinity;
  if (k < first || k > last || (bound.every && k % s.T) || (bound.atLast && k !== s.horizon) || !stepIndex.has(k) || !bound.holds(s, k)) return NaN;
  return bound.value(s, k);
}

const ORIGINS = ["statement", "branch", "proof", "tightened", "trivial"];

/** The rows that apply after k steps, the smallest upper bound first, as `fg.bounds.evaluate` sorts them. */
export function rowsAt(bounds, s, k, quantity) {
  const rows = bounds.filter((bound) => bound.quantity === quantity).map((bound) => ({bound, value: valueOf(bound, s, k)}));
  const size = ({value}) => Number(value.toPrecision(12)), rank = ({bound}) => [bound.kind === "rate", 0, bound.status === "proved here", ORIGINS.indexOf(bound.origin)];
  return rows.filter(({value}) => !Number.isNaN(value)).sort((a, b) => {
    const [one, two] = [rank(a), rank(b)];
    one[1] = size(a);
    two[1] = size(b);
    for (let i = 0; i < one.length; i++) if (one[i] !== two[i]) return one[i] - two[i];
    return 0;
  });
}

export const tightest = (rows) => rows.find(({bound}) => bound.kind === "upper") ?? null;

/** The value of doing nothing, which a bound must be below to say anything. */
export const trivialValue = (s, quantity) => quantity === "loss" ? s.radius_sq_mean * s.dist_sq / 2 : s.dist_sq * s.radius ** 2 / 2;

/** [k, largest known value, whether it is certified] for draws with replacement of T tasks, in units of |w_0 - w*|^2 R^2.
 *
 * Repeated equally often, fewer tasks are T tasks with the same values.
 */
export function worstKnown(T, quantity) {
  const best = new Map();
  for (const [tasks, k, value, certified] of DATA.worst[quantity])
    if (T % tasks === 0 && value > (best.get(k)?.[1] ?? 0)) best.set(k, [k, value, tasks === T && certified]);
  return [...best.values()].sort((a, b) => a[0] - b[0]);
}
