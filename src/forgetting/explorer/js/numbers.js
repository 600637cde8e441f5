// The numbers above the figures, in words for screen readers too, and the table of bounds.

import {BOUNDS} from "./data.js";
import {MOST_SUBSETS} from "./random_orders.js";
import {LARGEST_VALUE} from "./problem.js";
import {ORDERS, averaged} from "./state.js";
import {app} from "./app.js";
import {worstOf} from "./curves.js";
import {element, find} from "./dom.js";
import {said} from "./svg.js";

/** What to know of these values and of their bounds, in sentences. */
function remarks({order, scheme, eta, alpha, labels, noise, most}, {runs, how, last, loss}) {
  const words = [];
  if (how === "simulated") words.push(`More than ${MOST_SUBSETS} tasks in random order: the mean of ${runs} simulated orders, with 95 % intervals.`);
  if (labels) words.push("No w solves all these tasks: w\u22c6 is the least-squares solution.");
  if (noise) words.push(`Labels have noise: values and bounds are means over the noise${averaged({order}) ? " and the order" : ""}, and the path shows one draw of it.`);
  if (alpha !== 1) words.push("w is multiplied by what is kept before each step: no upper bound covers that.");
  else if (scheme === "sgd" && eta > 2) words.push("A step longer than 2 ends farther from its task than it began: no upper bound covers that.");
  if (scheme.startsWith("ridge-")) words.push(`Strengths are those for k = ${most}, where their bounds hold.`);
  if (last < most) words.push(loss[last] < LARGEST_VALUE ? `For tasks of this size the page goes to k = ${last}; the package goes on.` : `The steps diverge: the loss after k = ${last} steps is above 10\u00b2\u2075\u2070.`);
  return words;
}

export function showNumbers() {
  const {result, best, rows} = app.computed, k = app.state.k, box = find("#numbers"), near = (interval) => interval ? ` (${said(interval[k][0], 2)} to ${said(interval[k][1], 2)})` : "";
  const number = (label, value, more = "") => element("span", {}, label, element("b", {}, value), more), mean = averaged(app.state) ? "expected " : "";
  // a difference of losses that is rounding is 0
  const forgotten = app.computed.P.keeps && Math.abs(result.forgetting[k]) < 1e-15 * result.loss[0] ? 0 : result.forgetting[k];
  box.replaceChildren(
    number(`${mean}loss after k = ${k}`, said(result.loss[k]) + near(result.lossInterval)),
    number(`${mean}forgetting`, said(forgotten) + near(result.forgettingInterval)),
    number(`tightest bound on the ${app.state.quantity}`, best ? said(best.value) : "none applies", best?.bound.name ?? ""),
  );
  app.computed.worst = worstOf(app.state, app.computed.setting);
  const stored = app.computed.worst.find(([at]) => at === k);
  if (stored) box.append(number(`worst known ${app.state.X.length} tasks`, said(stored[1]), stored[2] ? "certified" : ""));
  const warn = remarks(app.state, result);
  for (const words of warn) box.append(element("span", {class: "warn"}, words));
  app.computed.words = `After ${k} steps, ${ORDERS[app.state.order]}: ${mean}loss ${said(result.loss[k])}${near(result.lossInterval)}, ${mean}forgetting ${said(forgotten)}${near(result.forgettingInterval)}. `
    + (best ? `Tightest bound on the ${app.state.quantity}: ${said(best.value)}, ${best.bound.name}.` : `No bound on the ${app.state.quantity} applies.`) + (stored ? ` The worst known ${app.state.X.length} tasks have ${said(stored[1])}.` : "") + warn.map((words) => ` ${words}`).join("");
  if (find("#bounds").open) showBounds(rows);
}

const SIGNS = {upper: "\u2264", lower: "worst \u2265", rate: "O of", floor: "\u2265"};
function showBounds(rows) {
  find("#bounds tbody").replaceChildren(...rows.map(({bound, value}) => element("tr", {}, element("td", {}, SIGNS[bound.kind]), element("td", {class: "num"}, said(value)), element("td", {}, `${bound.name}${bound === app.computed.best?.bound ? " (tightest)" : ""}`), element("td", {}, bound.formula))));
  const left = BOUNDS.unshown.map(({name}) => name);
  find("#bounds-said").textContent = `On the expected ${app.state.quantity} after k = ${app.state.k} steps. S is |w\u22c6|\u00b2 R\u00b2, R the largest norm, r the mean rank. ${left.length ? `Not shown here, and in fg.bounds.evaluate: ${left.join("; ")}.` : ""}`;
}

export function connectNumbers() {
  find("#bounds").addEventListener("toggle", () => showBounds(app.computed.rows));
}
