// The state that is shown, and what was computed from it. All changes until the next frame are drawn once.

import {fromHash} from "./address.js";
import {tidy} from "./state.js";

export const app = {state: fromHash(location.hash), computed: null, plane: null, curves: null, render: null};

let waiting = false;
export function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; app.render(); });
}

export function change(parts = {}) {
  Object.assign(app.state, parts);
  tidy(app.state);
  later();
}
