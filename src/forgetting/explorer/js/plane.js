// The figure of the path of w, step by step, with the lines of the tasks and handles that turn them.

import {canvas, colour, draw, path, round, said, text} from "./svg.js";
import {norm} from "./linear.js";

/** The line of a task in the plane of two axes: the angle of its direction, or null where the task has none there. */
export function lineAngle(rows, [a, b]) {
  const [x, y] = [rows[0][a], rows[0][b]];
  return Math.hypot(x, y) > 1e-9 * norm(rows[0]) ? Math.atan2(-x, y) : null;
}

const MARGIN = 14, APART = 23;  // of handles, in pixels

/** A place for the handle of a line through a point: within the figure, and not on another handle. */
function freePlace(taken, [x, y], [dx, dy], width, height) {
  const reach = Math.min(width, height) / 2, inside = ([a, b]) => Math.min(a - MARGIN, b - MARGIN, width - MARGIN - a, height - MARGIN - b);
  const away = ([a, b]) => Math.min(...taken.map((other) => Math.hypot(other[0] - a, other[1] - b) - APART));
  let best = null, most = -Infinity;
  for (const share of [0.62, 0.8, 0.45, 0.97, 0.3, 1.15, 1.35, 1.6, 1.9]) for (const sign of [1, -1]) {
    const made = [x + sign * share * reach * dx, y + sign * share * reach * dy], free = Math.min(inside(made), away(made));
    if (free > 0) return made;
    if (free > most) [best, most] = [made, free];
  }
  if (inside(best) >= 0) return best;
  // the line is not within the figure: its handle waits at the edge
  const [a, b] = [Math.min(Math.max(best[0], MARGIN), width - MARGIN), Math.min(Math.max(best[1], MARGIN), height - MARGIN)];
  const moves = Array.from({length: 24}, (_, i) => (i % 2 ? 1 : -1) * APART * Math.ceil(i / 2));
  const free = moves.flatMap((move) => [[a, b + move], [a + move, b]]).find((made) => inside(made) >= 0 && away(made) > 0);
  return free ?? [a, b];
}

export function drawPlane(svg, state, {walk, centre, shifts}) {
  const {width, height, parts} = canvas(svg, 0.92, 300), [a, b] = state.axes, two = a !== b;
  const flat = (w) => [w[a], two ? w[b] : 0], star = flat(centre), reach = Math.max(Math.hypot(...star), 0.35 * norm(centre), 1e-9);
  const middle = star.map((value) => value / 2), noisy = shifts.some((shift) => shift !== 0);
  // projections on tasks with a common solution only come nearer to it; with noise, the path may need more room
  const needed = noisy ? Math.max(...walk.path.map((w) => Math.max(...flat(w).map((value, i) => Math.abs(value - middle[i]))))) : 0;
  const half = Math.min(Math.max(0.92 * reach, 1.05 * needed), 4 * reach), unit = Math.min(width, height) / 2 / half;
  const place = ([x, y]) => [width / 2 + (x - middle[0]) * unit, height / 2 - (y - middle[1]) * unit];
  const back = (px, py) => [(px - width / 2) / unit + middle[0], (height / 2 - py) / unit + middle[1]];
  const far = 3 * (width + height), [sx, sy] = place(star), handles = [];
  const taken = [[sx, sy], place([0, 0])];
  state.X.forEach((rows, m) => {
    const angle = two ? lineAngle(rows, state.axes) : null;
    if (angle === null) return;
    const [dx, dy] = [Math.cos(angle), -Math.sin(angle)], chosen = m === state.task, [x, y] = [rows[0][a], rows[0][b]], shift = shifts[m] / (x * x + y * y);
    const [px, py] = place([star[0] + shift * x, star[1] + shift * y]);
    parts.push(draw("line", {x1: round(px - far * dx), y1: round(py - far * dy), x2: round(px + far * dx), y2: round(py + far * dy), stroke: colour(m), "stroke-width": chosen ? 2.4 : 1.4, "stroke-opacity": rows.length > 1 ? 0.45 : 0.9, "stroke-dasharray": rows.length > 1 ? "5 4" : null}));
    const [hx, hy] = freePlace(taken, [px, py], [dx, dy], width, height);
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
  parts.push(draw("circle", {cx: round(sx), cy: round(sy), r: 5, fill: colour(4), stroke: "var(--text)"}), named([sx, sy], "w\u22c6", true));
  parts.push(draw("rect", {x: round(ox - 4), y: round(oy - 4), width: 8, height: 8, fill: "var(--text)"}), named([ox, oy], "start", false));
  parts.push(draw("circle", {cx: round(now[0]), cy: round(now[1]), r: 5.5, fill: colour(1), stroke: "var(--card)", "stroke-width": 1.5}), ...handles);
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `The path of w through ${state.step} steps, to a distance of ${said(norm(walk.path[seen.length - 1].map((value, i) => value - centre[i])), 3)} from w\u22c6; the handles turn tasks`);
  return {angleAt: (px, py) => { const [x, y] = back(px, py); return Math.atan2(y - star[1], x - star[0]); }};
}
