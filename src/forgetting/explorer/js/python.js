// The state as lines of Python.

import {DATA} from "./data.js";
import {FAMILIES} from "./families.js";

/** The k of bounds: with a strength that is fitted to the number of steps, that number comes last. */
const bounded = ({k, most, scheme}) => scheme.startsWith("ridge-") && k < most ? `[${k}, ${most}]` : k;

/** About twelve k of the page, with the one that is shown and the last. */
function someSteps({k, most}) {
  const all = DATA.steps.filter((step) => step <= most), every = Math.ceil(all.length / 12);
  return [...new Set([...all.filter((_, i) => i % every === 0), k, most])].sort((a, b) => a - b);
}

/** A state as lines of Python that compute the same with the package. */
export function toPython(state) {
  const known = !state.edited && FAMILIES[state.family]?.python, list = (values) => `[${[...values].join(", ")}]`;
  const stack = (rows) => `[${rows.map(list).join(", ")}]`, lines = ["import numpy as np", "import forgetting as fg", ""];
  if (known) lines.push(`tasks = ${known(state.parameters)}`);
  else {
    // what no w fits within a task is a row of zeros with a label
    const outputs = state.w.length > 1, rest = state.X.map((_, m) => state.labels && state.floors?.[m] > 0 ? Math.sqrt(2 * state.floors[m]) : 0);
    const rows = state.X.map((task, m) => rest[m] ? [...task, task[0].map(() => 0)] : task);
    if (state.d !== state.w[0].length) lines.push("# the given tasks in their joint row space");
    lines.push("X = [", ...rows.map((task) => `    ${stack(task)},`), "]");
    if (state.labels) {
      let first = 0;
      const columns = state.X.map((task, m) => { first += task.length; return state.labels.map((column, c) => [...column.slice(first - task.length, first), ...(rest[m] ? [c ? 0 : rest[m]] : [])]); });
      lines.push("y = [", ...columns.map((task) => `    ${outputs ? stack(task[0].map((_, n) => task.map((column) => column[n]))) : list(task[0])},`), "]");
    } else lines.push(`w = np.array(${outputs ? `${stack(state.w)}).T` : `${list(state.w[0])})`}`, "y = [np.array(rows) @ w for rows in X]");
    lines.push("tasks = fg.RegressionTasks(X, y)");
  }
  const order = {with: '"with-replacement"', without: '"without-replacement"', cyclic: '"cyclic"', given: `fg.orderings.Explicit(${list(state.given)})`,
    greedy: "fg.orderings.GreedyDistance(repeat=False)", "greedy-again": "fg.orderings.GreedyDistance()"}[state.order];
  const step = {kaczmarz: "fg.schemes.Kaczmarz()", sgd: `fg.schemes.SGD(${state.eta})`, ridge: `fg.schemes.Ridge(${state.lam})`,
    "ridge-fixed": 'fg.schemes.Ridge("fixed")', "ridge-increasing": 'fg.schemes.Ridge("increasing")'}[state.scheme];
  lines.push(`scheme = ${state.alpha === 1 ? step : `fg.schemes.Decay(${state.alpha}, ${step})`}`, `ordering = ${order}`, `k = ${list(someSteps(state))}`);
  lines.push(`e = fg.expect(tasks, ordering, k, scheme=scheme${state.noise ? `, noise=${state.noise}` : ""})`, "print(e.loss, e.forgetting)");
  // several outputs are learned as one by an order that looks at w
  const features = state.d && state.d !== state.w[0].length ? `, d=${state.d * (state.order.startsWith("greedy") ? state.w.length : 1)}` : "";
  if (state.noise) lines.push("", "# bounds on the mean over the noise: each label has an output of its own", "X = [tasks.task(m)[0] for m in range(tasks.num_tasks)]",
    "labels = np.concatenate([tasks.task(m)[1] for m in range(tasks.num_tasks)])", `outputs = np.column_stack([labels, ${state.noise} * np.eye(len(labels))])`,
    "tasks = fg.RegressionTasks(X, np.split(outputs, np.cumsum([len(rows) for rows in X])[:-1]))");
  lines.push(`bounds = fg.bounds.evaluate(tasks, ordering, ${bounded(state)}, scheme=scheme${features})`, "print(bounds)");
  return `${lines.join("\n")}\n`;
}
