// The four figures. Each is drawn anew from the state and from what was computed.

import {DATA} from "./data.js";
import {canvas, colour, draw, keyLine, legend, logScale, path, round, said} from "./figures.js";
import {trivialValue, valueOf, worstKnown} from "./bounds.js";
import {norm, product, transpose} from "./linear.js";

const GRID = {stroke: "var(--grid)", "stroke-width": 1}, AXIS = {stroke: "var(--soft)", "stroke-width": 1};
const text = (x, y, words, more = {}) => draw("text", {x: round(x), y: round(y), ...more}, words);

/** Whether values are means, over random orders or over noise. */
export const averaged = (state) => state.order === "with" || state.order === "without" || state.noise > 0;

// ------------------------------------------------------------------------------------- expected values, bounds and worst

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
  const left = 52, right = width - 12, top = 8, last = Math.max(result.last, 2), size = made.setting.radius_sq_mean * made.setting.dist_sq / 2 || 1;
  const values = [...shown.loss, ...shown.forgetting].map(([, value]) => value), above = [...values, ...shown.tightest.map(([, value]) => value), ...shown.worst.map(([, value]) => value)];
  const high = Math.max(...above.filter((value) => value <= 4 * size), size * 1e-9, shown.trivial && shown.trivial <= 4 * size ? shown.trivial : 0) * 1.3;
  const low = Math.min(high / 30, Math.max(Math.min(...above, high), high * 1e-8) / 1.4);
  const entries = [[keyLine({stroke: colour(0), "stroke-width": 2.2}), `${mean}loss`], [keyLine({stroke: colour(1), "stroke-width": 2.2}), `${mean}forgetting${shown.forgetting.length ? "" : " (not above 0)"}`]];
  if (shown.tightest.length) entries.push([keyLine({stroke: colour(3), "stroke-width": 1.8, "stroke-dasharray": "6 3"}), `tightest bound: ${best.bound.name}`]);
  if (shown.others.length) entries.push([keyLine({stroke: "var(--minor)", "stroke-width": 1, "stroke-dasharray": "2 2"}), `${shown.others.length} other bounds`]);
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

// -------------------------------------------------------------------------------------------------- the path of iterates

/** The line of a task in the plane of two axes: the angle of its direction, or null where the task has none there. */
export function lineAngle(rows, [a, b]) {
  const [x, y] = [rows[0][a], rows[0][b]];
  return Math.hypot(x, y) > 1e-9 * norm(rows[0]) ? Math.atan2(-x, y) : null;
}

/** A place for the handle of a line through a point: within the figure, and not on another handle. */
function freePlace(taken, [x, y], [dx, dy], width, height) {
  const reach = Math.min(width, height) / 2;
  let best = null, most = -Infinity;
  for (const share of [0.62, 0.8, 0.45, 0.97, 0.3, 1.15, 1.35, 1.6, 1.9]) for (const sign of [1, -1]) {
    const made = [x + sign * share * reach * dx, y + sign * share * reach * dy];
    const free = Math.min(made[0] - 14, made[1] - 14, width - 14 - made[0], height - 14 - made[1], ...taken.map((other) => Math.hypot(other[0] - made[0], other[1] - made[1]) - 23));
    if (free > 0) return made;
    if (free > most) [best, most] = [made, free];
  }
  return best;
}

export function drawPlane(svg, state, {walk, centre}) {
  const {width, height, parts} = canvas(svg, 0.92, 300), [a, b] = state.axes, two = a !== b;
  const flat = (w) => [w[a], two ? w[b] : 0], star = flat(centre), reach = Math.max(Math.hypot(...star), 0.35 * norm(centre), 1e-9);
  const half = 0.92 * reach, middle = star.map((value) => value / 2), unit = Math.min(width, height) / 2 / half;
  const place = ([x, y]) => [width / 2 + (x - middle[0]) * unit, height / 2 - (y - middle[1]) * unit];
  const back = (px, py) => [(px - width / 2) / unit + middle[0], (height / 2 - py) / unit + middle[1]];
  const far = 3 * (width + height), [sx, sy] = place(star), handles = [];
  const taken = [[sx, sy], place([0, 0])];
  state.X.forEach((rows, m) => {
    const angle = two ? lineAngle(rows, state.axes) : null;
    if (angle === null) return;
    const [dx, dy] = [Math.cos(angle), -Math.sin(angle)], chosen = m === state.task;
    parts.push(draw("line", {x1: round(sx - far * dx), y1: round(sy - far * dy), x2: round(sx + far * dx), y2: round(sy + far * dy), stroke: colour(m), "stroke-width": chosen ? 2.4 : 1.4, "stroke-opacity": rows.length > 1 ? 0.45 : 0.9, "stroke-dasharray": rows.length > 1 ? "5 4" : null}));
    const [hx, hy] = freePlace(taken, [sx, sy], [dx, dy], width, height);
    taken.push([hx, hy]);
    const degrees = Math.round(1800 * angle / Math.PI) / 10;
    handles.push(draw("g", {class: "handle", "data-task": m, tabindex: chosen ? 0 : -1, role: "slider", "aria-label": `${state.names[m]}, angle of its line`, "aria-valuemin": -180, "aria-valuemax": 180, "aria-valuenow": degrees, "aria-valuetext": `${degrees} degrees`},
      draw("circle", {cx: round(hx), cy: round(hy), r: 20, fill: "transparent"}),
      draw("circle", {cx: round(hx), cy: round(hy), r: 10, fill: "var(--card)", stroke: colour(m), "stroke-width": chosen ? 3 : 2}),
      text(hx, hy + 4, String(m), {"text-anchor": "middle", "font-size": 11})));
  });
  const points = walk.path.map((w) => place(flat(w))), seen = points.slice(0, state.step + 1);
  parts.push(draw("path", {d: path(points), fill: "none", stroke: "var(--minor)", "stroke-width": 0.8}));
  parts.push(draw("path", {d: path(seen), fill: "none", stroke: "var(--text)", "stroke-width": 1.3}));
  seen.forEach(([x, y], k) => parts.push(draw("circle", {cx: round(x), cy: round(y), r: 2.4, fill: k ? colour(walk.order[k - 1]) : "var(--text)"})));
  const named = ([x, y], words, up) => draw("text", {x: round(x + 10), y: round(y + (up ? -9 : 17)), "font-size": 13, stroke: "var(--card)", "stroke-width": 4, "paint-order": "stroke"}, words);
  const [ox, oy] = place([0, 0]), now = seen[seen.length - 1];
  parts.push(draw("circle", {cx: round(sx), cy: round(sy), r: 5, fill: colour(4), stroke: "var(--text)"}), named([sx, sy], state.labels ? "best w" : "w\u22c6", true));
  parts.push(draw("rect", {x: round(ox - 4), y: round(oy - 4), width: 8, height: 8, fill: "var(--text)"}), named([ox, oy], "start", false));
  parts.push(draw("circle", {cx: round(now[0]), cy: round(now[1]), r: 5.5, fill: colour(1), stroke: "var(--card)", "stroke-width": 1.5}), ...handles);
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `The path of w through ${state.step} steps; the handles turn tasks`);
  return {angleAt: (px, py) => { const [x, y] = back(px, py); return Math.atan2(y - star[1], x - star[0]); }};
}

// ------------------------------------------------------------------------------------------------------------ the angles

const MOST_CELLS = 24;  // rows of tasks up to which each direction has a cell of its own

export function drawAngles(svg, state, {P}) {
  const spans = P.parts.map(({span}) => span), count = spans.reduce((sum, span) => sum + span.length, 0), fine = count <= MOST_CELLS;
  const sizes = spans.map((span) => fine ? span.length : 1), total = sizes.reduce((sum, value) => sum + value, 0);
  const {width, height, parts} = canvas(svg, 0.62, 240), top = 20, left = 34, side = Math.min(width - left - 90, height - top - 8) / total;
  let y = top;
  spans.forEach((one, m) => {
    let x = left;
    spans.forEach((two, n) => {
      const block = product(one, transpose(two, P.D)), cells = fine ? block : [[Math.max(...block.flatMap((row) => [...row].map(Math.abs)))]];
      cells.forEach((row, i) => row.forEach((value, j) => {
        const size = Math.min(Math.abs(value), 1);
        parts.push(draw("rect", {x: round(x + j * side), y: round(y + i * side), width: round(side), height: round(side), fill: colour(value < 0 ? 1 : 0), "fill-opacity": round(size), stroke: "var(--card)", "stroke-width": 0.5}));
      }));
      if (m !== n && total <= 8 && one.length === 1 && two.length === 1 && side >= 34) {
        const size = Math.min(Math.abs(cells[0][0]), 1), degrees = Math.acos(size) * 180 / Math.PI;
        const mine = draw("g", {}, draw("rect", {x: round(x + side / 2 - 17), y: round(y + side / 2 - 9), width: 34, height: 17, rx: 4, fill: "var(--card)"}));
        parts.push(mine, text(x + side / 2, y + side / 2 + 4, `${degrees < 10 ? degrees.toFixed(1) : Math.round(degrees)}\u00b0`, {"text-anchor": "middle", "font-size": 11}));
      }
      parts.push(draw("rect", {x: round(x), y: round(y), width: round(side * sizes[n]), height: round(side * sizes[m]), fill: "none", stroke: m === state.task || n === state.task ? "var(--soft)" : "var(--rule)", "stroke-width": 1}));
      x += side * sizes[n];
    });
    const middle = y + side * sizes[m] / 2, across = left + (y - top) + side * sizes[m] / 2;
    parts.push(text(left - 8, middle + 4, String(m), {"text-anchor": "end", class: "soft"}), text(across, top - 7, String(m), {"text-anchor": "middle", class: "soft"}));
    y += side * sizes[m];
  });
  const edge = left + side * total + 16;
  [[1, 0, "1"], [0.5, 0, "0.5"], [0, 0, "0"], [0.5, 1, "\u22120.5"], [1, 1, "\u22121"]].forEach(([value, place, words], i) => {
    parts.push(draw("rect", {x: edge, y: top + 22 + 20 * i, width: 16, height: 16, fill: colour(place), "fill-opacity": value, stroke: "var(--rule)"}), text(edge + 22, top + 34 + 20 * i, words, {class: "soft"}));
  });
  parts.push(text(edge, top + 10, "cosine", {class: "soft"}));
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", "Cosines of the angles between the directions of tasks, by pairs of tasks");
}

// ------------------------------------------------------------------------------------------------------ forgetting by task

export function drawShares(svg, state, {result, setting}) {
  const rounding = 1e-28 * setting.dist_sq * setting.radius ** 2;  // of the loss of a task that is solved
  const shares = result.shares[Math.min(state.k, result.last)].map((value) => Math.abs(value) < rounding ? 0 : value), {width, height, parts} = canvas(svg, 0.62, 240), T = shares.length;
  const names = state.names.map((name) => name.length > 12 ? `${name.slice(0, 11)}\u2026` : name), wide = Math.max(...names.map((name) => name.length)) * 6.4 + 12;
  const top = 6, bottom = height - 22, row = (bottom - top) / T, most = Math.max(...shares.map(Math.abs)) || 1, negative = shares.some((value) => value < -1e-12 * most);
  const left = wide, right = width - 74, zero = negative ? left + 0.35 * (right - left) : left, unit = (negative ? Math.min(zero - left - 8, right - zero) : right - zero) / most;
  shares.forEach((value, m) => {
    const y = top + m * row, long = Math.abs(value) * unit, start = value < 0 ? zero - long : zero;
    parts.push(draw("rect", {x: round(start), y: round(y + row * 0.16), width: Math.max(round(long), 0.5), height: round(row * 0.68), fill: colour(m), "fill-opacity": m === state.task ? 1 : 0.75}));
    parts.push(text(left - 8, y + row / 2 + 4, names[m], {"text-anchor": "end", class: m === state.task ? null : "soft"}));
    parts.push(text(Math.max(start + long, zero) + 6, y + row / 2 + 4, said(value, 3)));
  });
  parts.push(draw("line", {x1: zero, x2: zero, y1: top, y2: bottom, ...AXIS}), text(left, height - 4, `after k = ${state.k} steps; the parts sum to ${said(result.forgetting[state.k])}`, {class: "soft"}));
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `Forgetting by task after ${state.k} steps: ${shares.map((value, m) => `${state.names[m]} ${said(value, 3)}`).join(", ")}`);
}
