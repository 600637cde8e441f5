"use strict";
// Each task is a line of solutions through w*; learning a task projects w onto its line. All numbers are computed here.
for (const lab of document.querySelectorAll(".lab[data-lab]")) {
  const set = JSON.parse(lab.dataset.lab), tasks = set.names.length;
  const find = (selector) => lab.querySelector(selector), all = (selector) => [...lab.querySelectorAll(selector)];
  const angles = set.angles.slice(), start = set.start.slice();
  let order = Object.values(set.orders)[0].slice(0, set.steps), shown = 0, timer = 0;

  // the learner: rows x_m of norm 1 across each line, labels y_m = x_m . w*
  const row = (m) => { const a = angles[m] * Math.PI / 180; return [-Math.sin(a), Math.cos(a)]; };
  const residual = (m, w) => { const x = row(m); return x[0] * (w[0] - set.solution[0]) + x[1] * (w[1] - set.solution[1]); };
  const loss = (m, w) => residual(m, w) ** 2 / 2;
  const learn = (m, w) => { const x = row(m), r = residual(m, w); return [w[0] - r * x[0], w[1] - r * x[1]]; };
  const run = () => {
    const points = [start.slice()];
    for (const m of order) points.push(learn(m, points[points.length - 1]));
    const losses = points.map((w) => { let sum = 0; for (let m = 0; m < tasks; m++) sum += loss(m, w); return sum / tasks; });
    const forgetting = points.map((w, k) => {
      let sum = 0;
      for (let t = 0; t < k; t++) sum += loss(order[t], w) - loss(order[t], points[t + 1]);
      return k ? sum / k : null;
    });
    return {order, points, losses, forgetting};
  };

  // the drawing: places inside the axes that matplotlib drew
  const frames = {};
  for (const [name, selector] of [["plane", "svg.plane"], ["chart", "svg.chart"]]) {
    const svg = find(selector), {at, ends} = JSON.parse(svg.dataset.frame);
    const group = document.createElementNS(svg.namespaceURI, "svg");
    for (const [key, value] of [["x", at[0]], ["y", at[3]], ["width", at[2] - at[0]], ["height", at[1] - at[3]]]) group.setAttribute(key, value);
    svg.append(group);
    const x = (v) => (v - ends[0]) / (ends[1] - ends[0]) * (at[2] - at[0]);
    const up = (v) => name === "plane" ? (v - ends[2]) / (ends[3] - ends[2])
      : Math.log(Math.max(v, set.lowest / 2) / ends[2]) / Math.log(ends[3] / ends[2]);
    const y = (v) => (at[1] - at[3]) * (1 - up(v));
    const back = (event) => {
      const box = svg.getBoundingClientRect(), unit = svg.viewBox.baseVal.width / box.width;
      const px = (event.clientX - box.left) * unit - at[0], py = (event.clientY - box.top) * unit - at[3];
      return [ends[0] + px / (at[2] - at[0]) * (ends[1] - ends[0]), ends[2] + (1 - py / (at[1] - at[3])) * (ends[3] - ends[2])];
    };
    frames[name] = {svg, group, x, y, back, ends};
  }
  const make = (frame, tag, attributes) => {
    const part = document.createElementNS(frame.svg.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    frame.group.append(part);
    return part;
  };
  const colour = (m) => `var(--c${m})`, ink = "var(--text,currentColor)";
  const {plane, chart} = frames;
  const lines = set.names.map((_, m) => make(plane, "line", {style: `stroke:${colour(m)};stroke-width:1.6`}));
  const path = make(plane, "polyline", {style: `fill:none;stroke:${ink};stroke-width:1.1`});
  const dots = make(plane, "g", {style: `fill:${ink}`});
  make(plane, "circle", {cx: plane.x(set.solution[0]), cy: plane.y(set.solution[1]), r: 5, style: `fill:var(--c4);stroke:${ink}`});
  const handles = set.names.map((_, m) => make(plane, "circle", {r: 7, class: "handle", "data-handle": m, style: `fill:${colour(m)};fill-opacity:.75`}));
  const grip = make(plane, "rect", {width: 11, height: 11, class: "handle", "data-handle": "start", style: `fill:${ink}`});
  const label = (words) => { const part = make(plane, "text", {style: `fill:${ink};font-size:13px`}); part.textContent = words; return part; };
  const names = [label("w\u2080"), label("w\u22c6")];
  const walker = make(plane, "circle", {r: 6, style: "fill:var(--c1)"});
  const curves = ["losses", "forgetting"].map((name, place) => ({name, part: make(chart, "polyline",
    {style: `fill:none;stroke:${colour(place)};stroke-width:1.8;stroke-dasharray:${place ? "6 3" : "none"}`})}));
  const marks = curves.map((_, place) => make(chart, "circle", {r: 3.5, style: `fill:${colour(place)}`}));

  const number = (value) => value === null ? "not defined" : value === 0 ? "0" : value < 1e-3 ? value.toExponential(3) : value.toPrecision(4);
  const draw = () => {
    const made = run();
    shown = Math.min(shown, order.length);
    const reach = plane.ends[1] - plane.ends[0];
    for (let m = 0; m < tasks; m++) {
      const a = angles[m] * Math.PI / 180, [c, s] = [Math.cos(a), Math.sin(a)], [u, v] = set.solution;
      const ends = {x1: plane.x(u - 2 * reach * c), y1: plane.y(v - 2 * reach * s), x2: plane.x(u + 2 * reach * c), y2: plane.y(v + 2 * reach * s)};
      for (const [name, value] of Object.entries(ends)) lines[m].setAttribute(name, value);
      handles[m].setAttribute("cx", plane.x(u + 0.22 * reach * c));
      handles[m].setAttribute("cy", plane.y(v + 0.22 * reach * s));
    }
    const seen = made.points.slice(0, shown + 1), [wx, wy] = seen[shown];
    path.setAttribute("points", seen.map(([x, y]) => `${plane.x(x)},${plane.y(y)}`).join(" "));
    dots.replaceChildren();
    for (const [x, y] of seen) {
      const dot = document.createElementNS(plane.svg.namespaceURI, "circle");
      for (const [name, value] of [["cx", plane.x(x)], ["cy", plane.y(y)], ["r", 2.2]]) dot.setAttribute(name, value);
      dots.append(dot);
    }
    grip.setAttribute("x", plane.x(start[0]) - 5.5);
    grip.setAttribute("y", plane.y(start[1]) - 5.5);
    [start, set.solution].forEach(([x, y], place) => {
      names[place].setAttribute("x", plane.x(x) + 9);
      names[place].setAttribute("y", plane.y(y) + (place ? 20 : -6));
    });
    walker.setAttribute("cx", plane.x(wx));
    walker.setAttribute("cy", plane.y(wy));
    curves.forEach(({name, part}, place) => {
      const values = made[name].map((value, k) => [k, value]).filter(([k, value]) => k <= shown && value !== null);
      part.setAttribute("points", values.map(([k, value]) => `${chart.x(k)},${chart.y(value)}`).join(" "));
      marks[place].style.display = values.length ? "" : "none";
      if (values.length) {
        const [k, value] = values[values.length - 1];
        marks[place].setAttribute("cx", chart.x(k));
        marks[place].setAttribute("cy", chart.y(value));
      }
    });
    all(".angle").forEach((slider, m) => { slider.value = angles[m]; slider.parentElement.querySelector("output").textContent = `${Number(angles[m]).toFixed(1)}°`; });
    const step = find(".step");
    step.max = order.length;
    step.value = shown;
    const task = shown ? `${set.names[order[shown - 1]]} learned` : "start";
    find(".said").textContent = `step ${shown} of ${order.length}: ${task}; loss ${number(made.losses[shown])}, forgetting ${number(made.forgetting[shown])}`;
    lab.result = made;  // for tests, and for those who look
  };

  const stop = () => { clearInterval(timer); timer = 0; find(".play").textContent = "Play"; };
  const byHand = () => { find(".order").value = ""; };
  all(".angle").forEach((slider, m) => slider.addEventListener("input", () => { angles[m] = Number(slider.value); draw(); }));
  find(".order").addEventListener("change", (event) => {
    stop();
    order = (set.orders[event.target.value] || []).slice(0, set.steps);
    shown = order.length;
    draw();
  });
  find(".step").addEventListener("input", (event) => { stop(); shown = Number(event.target.value); draw(); });
  find(".play").addEventListener("click", () => {
    if (timer) return stop();
    if (shown >= order.length) shown = 0;
    find(".play").textContent = "Pause";
    draw();
    timer = setInterval(() => { if (shown >= order.length) return stop(); shown += 1; draw(); }, 500);
  });
  for (const button of all(".learn")) button.addEventListener("click", () => {
    stop();
    if (find(".order").value) { order = order.slice(0, shown); byHand(); }
    if (order.length < set.steps) order = [...order, Number(button.dataset.task)];
    shown = order.length;
    draw();
  });
  find(".undo").addEventListener("click", () => { stop(); order = order.slice(0, Math.max(shown - 1, 0)); byHand(); shown = order.length; draw(); });
  find(".again").addEventListener("click", () => { stop(); order = []; byHand(); shown = 0; draw(); });
  for (const handle of [...handles, grip]) {
    handle.addEventListener("pointerdown", (event) => { stop(); handle.setPointerCapture(event.pointerId); event.preventDefault(); });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const [x, y] = plane.back(event);
      if (handle === grip) { start[0] = x; start[1] = y; }
      else {
        let angle = Math.atan2(y - set.solution[1], x - set.solution[0]) * 180 / Math.PI;
        if (angle > 90) angle -= 180;
        if (angle < -90) angle += 180;
        angles[Number(handle.dataset.handle)] = Math.round(angle * 2) / 2;
      }
      draw();
    });
  }
  lab.hidden = false;
  for (const still of lab.parentElement.querySelectorAll(":scope > .still")) still.hidden = true;
  shown = order.length;
  draw();
}
