// The figure of the forgetting of each task.

import {AXIS, canvas, colour, draw, fitting, round, said, text, widthOf} from "./svg.js";

export function drawShares(svg, state, {result, setting}) {
  const rounding = 1e-28 * setting.dist_sq * setting.radius ** 2;  // of the loss of a task that is solved
  const shares = result.shares[Math.min(state.k, result.last)].map((value) => Math.abs(value) < rounding ? 0 : value), {width, height, parts} = canvas(svg, 0.62, 240), T = shares.length;
  const names = state.names.map((name) => fitting(name, 90)), wide = Math.max(...names.map(widthOf)) + 14;
  const top = 6, bottom = height - 22, row = (bottom - top) / T, most = Math.max(...shares.map(Math.abs)) || 1, negative = shares.some((value) => value < -1e-12 * most);
  const left = wide, right = width - 74, zero = negative ? left + 0.35 * (right - left) : left, unit = (negative ? Math.min(zero - left - 8, right - zero) : right - zero) / most;
  shares.forEach((value, m) => {
    const y = top + m * row, long = Math.abs(value) * unit, start = value < 0 ? zero - long : zero;
    parts.push(draw("rect", {x: round(start), y: round(y + row * 0.16), width: Math.max(round(long), 0.5), height: round(row * 0.68), fill: colour(m), "fill-opacity": m === state.task ? 1 : 0.75}));
    parts.push(text(left - 8, y + row / 2 + 4, names[m], {"text-anchor": "end", class: m === state.task ? null : "soft"}));
    parts.push(text(Math.max(start + long, zero) + 6, y + row / 2 + 4, said(value, 3)));
  });
  const sum = `after k = ${state.k} steps; the parts sum to ${said(result.forgetting[state.k])}`;
  parts.push(draw("line", {x1: zero, x2: zero, y1: top, y2: bottom, ...AXIS}), text(Math.max(0, Math.min(left, width - widthOf(sum) - 4)), height - 4, sum, {class: "soft"}));
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `Forgetting by task after ${state.k} steps: ${shares.map((value, m) => `${state.names[m]} ${said(value, 3)}`).join(", ")}`);
}
