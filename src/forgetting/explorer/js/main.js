// The page: controls change the state, and one frame later everything is computed and drawn once.

import {fromHash, toHash} from "./address.js";
import {drawAngles} from "./angles.js";
import {app, change, later} from "./app.js";
import {fresh, gapRate, leastFresh} from "./bounds.js";
import {at, compute} from "./computing.js";
import {drawCurves} from "./curves.js";
import {DATA} from "./data.js";
import {element, find} from "./dom.js";
import {pngFile, saveFigure, svgFile} from "./files.js";
import {connectLearning, showLearning} from "./learning_panel.js";
import {connectNumbers, showNumbers} from "./numbers.js";
import {drawPlane} from "./plane.js";
import {connectCurves, connectPlane} from "./pointing.js";
import {drawShares} from "./shares.js";
import {connectSharing, isWritten, quietly} from "./sharing.js";
import {connectTasks, showTasks} from "./tasks_panel.js";
import {connectTour, showTour} from "./tour_panel.js";

function render() {
  const {state} = app, computed = app.computed = compute(state);
  app.curves = drawCurves(find("#fig-curves svg"), state, computed);
  const focused = document.activeElement?.closest?.("#fig-plane .handle")?.dataset.task;
  app.plane = drawPlane(find("#fig-plane svg"), state, computed);
  if (focused !== undefined) find(`#fig-plane .handle[data-task="${state.task}"]`)?.focus({preventScroll: true});
  drawAngles(find("#fig-angles svg"), state, computed);
  drawShares(find("#fig-shares svg"), state, computed);
  showNumbers();
  showTasks();
  showLearning();
  quietly();
  window.explorer = {state, computed, at, computeNow: () => compute(state), renderNow: render, change, svgFile, pngFile, toHash, programs: {fresh, gapRate, leastFresh}};  // for tests, and for those who look
}

function connectFiles() {
  for (const figure of document.querySelectorAll("figure")) for (const ending of ["PNG", "SVG"]) {
    const button = element("button", {type: "button", "aria-label": `Save ${figure.querySelector("h2").textContent} as ${ending}`}, ending);
    button.addEventListener("click", () => saveFigure(figure.querySelector("svg"), figure.id.replace("fig-", "forgetting-"), ending.toLowerCase()));
    figure.querySelector(".save").append(button);
  }
}

function connectTheme() {
  const button = find("#theme"), dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : dark.matches, label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  dark.addEventListener("change", label);
  label();
}

function connect() {
  find("form").addEventListener("submit", (event) => event.preventDefault());
  for (const [from, to, first] of [["#to-controls", "#controls", "#family"], ["#to-figures", ".views", "#to-controls"]])
    find(from).addEventListener("click", () => { find(to).scrollIntoView(); find(first).focus({preventScroll: true}); });
  find("#version").textContent = DATA.version;
  for (const each of [connectTasks, connectLearning, connectNumbers, connectSharing, connectFiles, connectPlane, connectCurves, connectTheme, connectTour]) each();
  addEventListener("hashchange", () => { if (!isWritten(location.hash)) { app.state = fromHash(location.hash); showTour(); later(); } });
  const watcher = new ResizeObserver(() => { for (const svg of document.querySelectorAll("figure svg")) svg.knownWidth = null; later(); });
  watcher.observe(find(".grid"));
}

app.render = render;
connect();
showTour();
render();
