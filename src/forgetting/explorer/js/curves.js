// The figure of loss and forgetting against k: expected values, bounds, and the worst known tasks.

import {DATA} from "./data.js";
import {AXIS, GRID, canvas, colour, draw, keyLine, legend, logScale, path, round, said, text} from "./svg.js";
import {trivialValue, valueOf, worstKnown} from "./bounds.js";
import {averaged} from "./state.js";

/** [k, largest known value, whether it is certified] for the number and the size of these tasks, where any are stored. */
export function worstOf(state, {T, dist_sq, radius}) {
  if (state.order !== "with" || state.scheme !== "kaczmarz" || state.alpha !== 1 || state.noise || state.labels) return [];
  const scale = dist_sq * radius ** 2;
  return (scale > 0 ? worstKnown(T, state.quantity) : []).map(([k, value, certified]) => [k, value * scale, certified]);
}

/** What the figure of curves shows: points of each curve, by what it is. */
function curvesOf(state, {result, bounds, setting, rows, best}) {
  const steps = DATA.steps.filter((k) => k <= result.last), at = (values) => steps.map((k) => [k, values[k]]).filter(([, value]) => value > 0);
  const others = bounds.filter((bound) => bound.quantity === state.quantity && bound.kind === "upper" && bound.origin !== "trivial" && bound.key !== best?.bound.key);
  const few = steps.filter((k, place) => k === 1 || k === result.last || place % Math.ceil(steps.length / 36) === 0), line = (bound, ks = steps) => ks.map((k) => [k, valueOf(bound, setting, k)]).filter(([, value]) => value > 0);
  const worst = worstOf(state, setting).filter(([k]) => k <= result.last);
  return {
    loss: at(result.loss), forgetting: at(result.forgetting), tightest: best && best.bound.origin !== "trivial" ? line(best.bound) : [],
    others: others.map((bound) => [bound, line(bound, bound.every ? steps : few)]).filter(([, points]) => points.length), worst,
    trivial: rows.length && bounds.some(({origin}) => origin === "trivial") ? trivialValue(setting, state.quantity) : null,
  };
}

const triangle = (filled) => ({fill: filled ? "var(--soft)" : "none", stroke: "var(--soft)", "stroke-width": 1});

export function drawCurves(svg, state, made) {
  const {result, best} = made, mean = averaged(state) ? "expected " : "", shown = curvesOf(state, made), {width, height, parts} = canvas(svg, 1, 330);
  const left = 52, right = width - 18, top = 8, last = Math.max(result.last, 2), size = made.setting.radius_sq_mean * made.setting.dist_sq / 2 || 1;
  const values = [...shown.loss, ...shown.forgetting].map(([, value]) => value), above = [...values, ...shown.tightest.map(([, value]) => value), ...shown.worst.map(([, value]) => value)];
  const high = Math.max(...above.filter((value) => value <= 4 * size), ...values.filter((value) => value <= 1e4 * size), shown.loss[0]?.[1] ?? 0, size * 1e-9, shown.trivial && shown.trivial <= 4 * size ? shown.trivial : 0) * 1.3;
  const low = Math.min(high / 30, Math.max(Math.min(...above, high), high * 1e-8) / 1.4);
  const entries = [[keyLine({stroke: colour(0), "stroke-width": 2.2}), `${mean}loss`], [keyLine({stroke: colour(1), "stroke-width": 2.2}), `${mean}forgetting${shown.forgetting.length ? "" : " (not above 0)"}`]];
  if (shown.tightest.length) entries.push([keyLine({stroke: colour(3), "stroke-width": 1.8, "stroke-dasharray": "6 3"}), `tightest bound: ${best.bound.name}`]);
  if (shown.others.length) entries.push([keyLine({stroke: "var(--minor)", "stroke-width": 1, "stroke-dasharray": "2 2"}), `${shown.others.length} other bound${shown.others.length > 1 ? "s" : ""}`]);
  if (shown.trivial !== null) entries.push([keyLine({stroke: "var(--soft)", "stroke-width": 1, "stroke-dasharray": "9 3"}), "trivial bound"]);
  if (shown.worst.length) entries.push([draw("path", {d: "M6 4L10.5 -4L15 4Z", ...triangle(shown.worst.some(([, , certified]) => certified))}), `worst known ${made.setting.T} tasks${shown.worst.some(([, , certified]) => certified) ? " (filled: certified)" : ""}`]);
  if (result.lossInterval) entries.push([draw("rect", {x: 2, y: -5, width: 17, height: 10, fill: colour(0), "fill-opacity": 0.25}), "95 % interval"]);
  const below = [], tall = legend(below, entries, 4, 0, width - 8), bottom = height - tall - 44;
  const x = logScale(1, last, left, right), y = logScale(low, high, bottom, top), inside = ([, value]) => value >= low / 4 && value <= high * 4;
  for (const value of x.lines) parts.push(draw("line", {x1: round(x.place(value)), x2: round(x.place(value)), y1: top, y2: bottom, ...GRID}));
  for (const value of y.lines) parts.push(draw("line", {x1: left, x2: right, y1: round(y.place(value)), y2: round(y.place(value)), ...GRID}));
  for (const [value, words] of x.ticks) parts.push(text(x.place(value), bottom + 16, words, {"text-anchor": "middle", class: "soft"}));
  for (const [value, words] of y.ticks) parts.push(text(left - 6, y.place(value) + 4, words, {"text-anchor": "end", class: "soft"}));
  parts.push(draw("path", {d: `M${left} ${top}V${bottom}H${right}`, fill: "none", ...AXIS}), text(right, bottom + 32, "k, tasks learned", {"text-anchor": "end", class: "soft"}));
  const clip = `clip-${svg.parentElement.id}`, body = draw("g", {"clip-path": `url(#${clip})`});
  parts.push(draw("defs", {}, draw("clipPath", {id: clip}, draw("rect", {x: left, y: top, width: right - left + 4, height: bottom - top}))));
  const curve = (points, attributes) => {
    const places = points.filter(inside).map(([k, value]) => [x.place(k), y.place(value)]);
    if (places.length > 1) body.append(draw("path", {d: path(places), fill: "none", "stroke-linejoin": "round", ...attributes}));
    else if (places.length) body.append(draw("circle", {cx: round(places[0][0]), cy: round(places[0][1]), r: 2.5, fill: attributes.stroke}));
  };
  const band = (intervals, place) => {
    const some = DATA.steps.filter((k) => k <= result.last && intervals[k][1] > low), edge = (end) => some.map((k) => [x.place(k), y.place(Math.max(intervals[k][end], low))]);
    if (some.length > 1) body.append(draw("path", {d: `${path([...edge(0), ...edge(1).reverse()])}Z`, fill: colour(place), "fill-opacity": 0.2}));
  };
  if (result.lossInterval) { band(result.lossInterval, 0); band(result.forgettingInterval, 1); }
  for (const [, points] of shown.others) curve(points, {stroke: "var(--minor)", "stroke-width": 0.8, "stroke-dasharray": "2 2"});
  if (shown.trivial !== null) curve([[1, shown.trivial], [last, shown.trivial]], {stroke: "var(--soft)", "stroke-width": 1.1, "stroke-dasharray": "9 3"});
  curve(shown.tightest, {stroke: colour(3), "stroke-width": 1.8, "stroke-dasharray": "6 3"});
  for (const [k, value, certified] of shown.worst) {
    const [px, py] = [round(x.place(k)), round(y.place(value))];
    body.append(draw("path", {d: `M${px - 4} ${py + 4}L${px} ${py - 4}L${px + 4} ${py + 4}Z`, ...triangle(certified)}));
  }
  const first = state.quantity === "loss" ? ["forgetting", "loss"] : ["loss", "forgetting"];
  for (const name of first) curve(shown[name], {stroke: colour(name === "loss" ? 0 : 1), "stroke-width": name === state.quantity ? 2.6 : 1.6});
  const here = round(x.place(state.k));
  body.append(draw("line", {x1: here, x2: here, y1: top, y2: bottom, stroke: "var(--text)", "stroke-width": 1, "stroke-opacity": 0.35}));
  for (const name of first) if (result[name][state.k] >= low && result[name][state.k] <= high)
    body.append(draw("circle", {cx: here, cy: round(y.place(result[name][state.k])), r: 4, fill: colour(name === "loss" ? 0 : 1), stroke: "var(--card)", "stroke-width": 1.5}));
  parts.push(body, draw("g", {transform: `translate(0 ${bottom + 52})`}, ...below));
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `Curves on logarithmic axes, k from 1 to ${result.last}: at k = ${state.k} the ${mean}loss is ${said(result.loss[state.k])} and the ${mean}forgetting ${said(result.forgetting[state.k])}`);
  return {stepAt: (px) => Math.min(Math.max(x.back(px), 1), last)};
}
