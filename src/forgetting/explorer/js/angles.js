// The figure of the angles between tasks: the cosines between their directions, as blocks of a table.

import {canvas, colour, draw, round, said, text} from "./svg.js";
import {product, transpose} from "./linear.js";

const MOST_CELLS = 24;  // rows of tasks up to which each direction has a cell of its own

export function drawAngles(svg, state, {P}) {
  const spans = P.parts.map(({span}) => span), count = spans.reduce((sum, span) => sum + span.length, 0), fine = count <= MOST_CELLS;
  const sizes = spans.map((span) => fine ? span.length : 1), total = sizes.reduce((sum, value) => sum + value, 0);
  const {width, height, parts} = canvas(svg, 0.62, 240), top = 20, left = 34, side = Math.min(width - left - 90, height - top - 8) / total;
  let y = top, alike = null, unlike = null;
  spans.forEach((one, m) => {
    let x = left;
    spans.forEach((two, n) => {
      const block = product(one, transpose(two, P.D)), most = Math.max(0, ...block.flatMap((row) => [...row].map(Math.abs))), cells = fine ? block : [[most]];
      if (m < n && !(most <= alike?.most)) alike = {most, m, n};
      if (m < n && !(most >= unlike?.most)) unlike = {most, m, n};
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
  const pair = ({most, m, n}) => `${said(most < 1e-12 ? 0 : most, 3)} between ${state.names[m]} and ${state.names[n]}`;
  svg.setAttribute("aria-label", `Cosines of the angles between the directions of tasks, by pairs of tasks${alike ? `: the largest is ${pair(alike)}, and no pair has less than ${pair(unlike)}` : ""}`);
}
