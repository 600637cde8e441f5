// Named families of tasks. Each gives rows X_m and a solution w; parameters have their least, largest and usual value.

import {DATA} from "./data.js";
import {normal, random} from "./random.js";

const line = (angle) => [[-Math.sin(angle), Math.cos(angle)]];
const unit = (values) => { const size = Math.hypot(...values); return values.map((value) => value / size); };
const rad = (degrees) => degrees * Math.PI / 180;
const rounded = (value) => { const up = Math.round(value); return up - value === 0.5 && up % 2 ? up - 1 : up; };  // as in Python: halves to even
const evenly = (from, to, count) => Array.from({length: count}, (_, i) => count > 1 ? from + (to - from) * i / (count - 1) : from);

/** Unit vectors with the inner products `share` - (1 - share)/(T - 1), by Cholesky, and the w at the same angle to all. */
function equiangular(T, share) {
  const other = T > 1 ? share - (1 - share) / (T - 1) : 1, rows = [];
  for (let i = 0; i < T; i++) {
    const row = new Array(T).fill(0);
    for (let j = 0; j < i; j++) row[j] = (other - row.slice(0, j).reduce((sum, value, n) => sum + value * rows[j][n], 0)) / rows[j][j];
    row[i] = Math.sqrt(Math.max(1 - row.slice(0, i).reduce((sum, value) => sum + value * value, 0), 0));
    rows.push(row);
  }
  const sum = rows.reduce((all, row) => all.map((value, n) => value + row[n]), new Array(T).fill(0));
  return {X: rows.map((row) => [row]), w: unit(sum)};
}

const whole = (title, least, most, usual) => ({title, least, most, usual, step: 1});
const part = (title, least, most, usual, step) => ({title, least, most, usual, step});

export const FAMILIES = {
  two_lines: {
    title: "two lines", words: "two lines in the plane that meet at an angle; w\u22c6 is halfway between them",
    parameters: {angle: part("angle (\u00b0)", 0.5, 90, 45, 0.5)},
    make: ({angle}) => ({X: [line(0), line(rad(angle))], w: [Math.cos(rad(angle) / 2), Math.sin(rad(angle) / 2)]}),
    python: ({angle}) => `fg.families.two_lines(np.radians(${angle}))`,
  },
  equiangular: {
    title: "equiangular", words: "the same angle between all tasks, and the same angle to w\u22c6",
    parameters: {T: whole("tasks", 2, 12, 4), share: part("share", 0.05, 0.95, 0.25, 0.05)},
    make: ({T, share}) => equiangular(T, share),
    python: ({T, share}) => `fg.families.equiangular(${T}, share=${share})`,
  },
  orthogonal: {
    title: "orthogonal", words: "tasks that have nothing in common: nothing is ever forgotten",
    parameters: {d: whole("tasks", 2, 12, 4)},
    make: ({d}) => ({X: Array.from({length: d}, (_, m) => [Array.from({length: d}, (_, i) => i === m ? 1 : 0)]), w: new Array(d).fill(d ** -0.5)}),
    python: ({d}) => `fg.families.orthogonal(${d})`,
  },
  catastrophic: {
    title: "catastrophic", words: "lines that turn slowly, then fast: the given order forgets nearly all",
    parameters: {eps: part("eps", 2.6, 6, 2.6, 0.1)},
    make: ({eps}) => {
      const slow = rounded((72 - 12 * eps) / eps ** 2 + 1), fast = rounded(12 / eps), turn = Math.sqrt(eps / 6);
      const angles = [...evenly(0, turn, slow), ...evenly(turn, Math.PI / 2, fast + 1).slice(1)];
      return {X: angles.map(line), w: [1, 0]};
    },
    python: ({eps}) => `fg.families.catastrophic(${eps})`,
  },
  back_and_forth: {
    title: "back and forth", words: "lines that turn forth in equal steps, and back: hard for a cyclic order",
    parameters: {T: part("tasks", 2, 12, 8, 2), angle: part("angle (\u00b0)", 1, 40, 10, 1)},
    make: ({T, angle}) => {
      const turns = [...evenly(0, T / 2 - 1, T / 2), ...evenly(T / 2 - 2, -1, T / 2)];
      return {X: turns.map((turn) => line(turn * rad(angle))), w: [1, 0]};
    },
    python: ({T, angle}) => `fg.families.back_and_forth(${T}, np.radians(${angle}))`,
  },
  gaussian: {
    title: "gaussian", words: "random rows, and a random w\u22c6 of length 1: the ordinary case",
    parameters: {T: whole("tasks", 1, 12, 6), d: whole("dimensions", 2, 12, 6), rank: whole("rank", 1, 6, 2), seed: whole("seed", 0, 999, 1)},
    make: ({T, d, rank, seed}) => {
      const draw = random(seed * 7919 + 13), numbers = (count) => Array.from({length: count}, () => normal(draw));
      const X = Array.from({length: T}, () => Array.from({length: Math.min(rank, d)}, () => numbers(d).map((value) => value / Math.sqrt(d))));
      return {X, w: unit(numbers(d))};
    },
  },
};
const DESCRIBED = {
  levels: "lines between levels of coordinates: nearly the worst tasks that are known for a random order",
  greedy_failure: "always learning the task that is farthest away turns the error away from the tasks before",
};
for (const [name, {title, X, w}] of Object.entries(DATA.stored))
  FAMILIES[name] = {title, words: DESCRIBED[name] ?? "no tasks of this number lose more after so many random draws", parameters: {}, make: () => ({X, w})};
