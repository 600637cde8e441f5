"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.querySelector("script#data").textContent);
  const tip = document.querySelector("div#tip");

  // light and dark: the system decides until the button is pressed
  const button = document.querySelector("button#theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  label();

  // what is under the pointer: the nearest point of a curve, or a cell
  for (const svg of document.querySelectorAll("svg[data-key]")) {
    const {points = [], cells = []} = data[svg.dataset.key] || {}, size = svg.viewBox.baseVal.width, hidden = new Set();
    const marks = points.flatMap(one => one.at.map((at, i) => [at, one.series, `${one.name}: ${one.y[i]} at ${one.x[i]}\n${one.detail}`]));
    const reading = (x, y) => {
      const cell = cells.find(c => c[0] <= x && x < c[2] && c[1] <= y && y < c[3]);
      let best = cell ? cell[4] : "", near = 400;
      for (const [at, series, words] of marks) {
        const far = (at[0] - x) ** 2 + (at[1] - y) ** 2;
        if (far < near && !hidden.has(series)) { near = far; best = words; }
      }
      return best;
    };
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), unit = size / box.width;
      const words = reading((event.clientX - box.left) * unit, (event.clientY - box.top) * unit);
      tip.hidden = !words;
      if (!words) return;
      tip.textContent = words;
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)) + "px";
      tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 12) + "px";
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });

    // the legend hides and shows
    for (const key of svg.querySelectorAll(".key")) {
      const series = key.dataset.series;
      const toggle = () => {
        const off = !hidden.delete(series) && Boolean(hidden.add(series));
        for (const part of svg.querySelectorAll(`[data-series="${series}"]`)) part.classList.toggle("off", off);
        for (const part of svg.querySelectorAll(`.key[data-series="${series}"]`)) part.setAttribute("aria-pressed", String(!off));
      };
      key.addEventListener("click", toggle);
      if (!key.querySelector("text")) continue;
      for (const [name, value] of [["tabindex", "0"], ["role", "button"], ["aria-pressed", "true"]]) key.setAttribute(name, value);
      key.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); } });
    }
  }
})();
