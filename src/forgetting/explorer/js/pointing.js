// What the mouse and the keys do in the figures: handles turn tasks, the curves choose k.

import {app, change} from "./app.js";
import {DATA} from "./data.js";
import {find} from "./dom.js";
import {lineAngle} from "./plane.js";
import {turn} from "./tasks_panel.js";

export function connectPlane() {
  const svg = find("#fig-plane svg");
  let held = null, before = 0;
  const angleOf = (event) => { const box = svg.getBoundingClientRect(); return app.plane.angleAt(event.clientX - box.left, event.clientY - box.top); };
  svg.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle) return;
    held = Number(handle.dataset.task);
    before = angleOf(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    change({task: held});
    requestAnimationFrame(() => find(`#fig-plane .handle[data-task="${held}"]`)?.focus({preventScroll: true}));
  });
  svg.addEventListener("pointermove", (event) => {
    if (held === null || !app.plane) return;
    const now = angleOf(event), line = lineAngle(app.state.X[held], app.state.axes);
    if (line === null) return;
    turn(held, now - before);
    before = now;
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { held = null; });
  svg.addEventListener("keydown", (event) => {
    const {key, shiftKey} = event, small = (shiftKey ? 0.1 : 1) * Math.PI / 180;
    if (key === "ArrowLeft" || key === "ArrowRight") turn(app.state.task, key === "ArrowLeft" ? small : -small);
    else if (key === "ArrowUp" || key === "ArrowDown") change({task: (app.state.task + (key === "ArrowUp" ? app.state.X.length - 1 : 1)) % app.state.X.length});
    else return;
    event.preventDefault();
  });
}

export function connectCurves() {
  const svg = find("#fig-curves svg");
  const pick = (event) => {
    const wanted = app.curves.stepAt(event.clientX - svg.getBoundingClientRect().left), steps = DATA.steps.filter((k) => k <= app.computed.result.last);
    change({k: steps.reduce((best, k) => Math.abs(Math.log(k / wanted)) < Math.abs(Math.log(best / wanted)) ? k : best, steps[0])});
  };
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); pick(event); });
  svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) pick(event); });
}
