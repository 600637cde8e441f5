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

  // the point nearest to the pointer
  const axis = text => {
    const [low, high, start, end, log] = text.split(" ").map(Number);
    const scale = value => log ? Math.log10(value) : value;
    return value => start + (end - start) * (scale(value) - scale(low)) / (scale(high) - scale(low));
  };
  const number = value => Number(value.toPrecision(4)).toString();
  for (const svg of document.querySelectorAll("svg.curves")) {
    const x = axis(svg.dataset.x), y = axis(svg.dataset.y), size = svg.viewBox.baseVal.width;
    const points = data[svg.dataset.key].flatMap(one => one.x.map((a, i) => [x(a), y(one.y[i]), one.name, a, one.y[i]]));
    const usable = points.filter(p => Number.isFinite(p[0]) && Number.isFinite(p[1]));
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), unit = size / box.width;
      const a = (event.clientX - box.left) * unit, b = (event.clientY - box.top) * unit;
      let best = null, near = 400;
      for (const p of usable) {
        const far = (p[0] - a) ** 2 + (p[1] - b) ** 2;
        if (far < near) { near = far; best = p; }
      }
      tip.hidden = best === null;
      if (best === null) return;
      tip.textContent = `${best[2]}: ${number(best[4])} at ${number(best[3])}`;
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)) + "px";
      tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 12) + "px";
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  // the path of projections, step by step
  for (const controls of document.querySelectorAll(".controls")) {
    const stages = [...controls.closest("figure").querySelectorAll("svg.path")].map(svg => ({
      moves: [...svg.querySelectorAll("[data-step]")],
      walker: svg.querySelector(".walker"),
      stops: svg.dataset.stops.split(" ").map(p => p.split(",")),
      order: svg.dataset.order.split(" ").map(Number),
    }));
    const play = controls.querySelector(".play"), slider = controls.querySelector("input"), say = controls.querySelector("output");
    const last = Number(slider.max);
    let timer = 0;
    const show = step => {
      slider.value = step;
      for (const stage of stages) {
        for (const mark of stage.moves) mark.classList.toggle("later", Number(mark.dataset.step) > step);
        const stop = stage.stops[Math.min(step, stage.stops.length - 1)];
        stage.walker.setAttribute("transform", `translate(${stop.join(" ")})`);
        stage.walker.style.transform = `translate(${stop.map(v => v + "px").join(",")})`;
        stage.walker.classList.add("moves");
      }
      const tasks = stages.map(stage => step > stage.order.length ? "end" : step ? `task ${stage.order[step - 1] + 1}` : "start").join(", ");
      say.textContent = `step ${step} of ${last}: ${tasks}`;
    };
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer) return stop();
      let step = Number(slider.value) >= last ? 0 : Number(slider.value);
      play.textContent = "Pause";
      show(step);
      timer = setInterval(() => { step += 1; show(step); if (step >= last) stop(); }, 600);
    });
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
    controls.hidden = false;
    show(last);
    // starts by itself once it is in view, unless the reader asked for less motion
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches && "IntersectionObserver" in window) {
      const seen = new IntersectionObserver(entries => {
        if (entries.some(entry => entry.isIntersecting)) { seen.disconnect(); if (!timer) play.click(); }
      }, {threshold: 0.6});
      seen.observe(controls.closest("figure"));
    }
  }
})();
