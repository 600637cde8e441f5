// The tour on the page.

import {app, change, later} from "./app.js";
import {element, find} from "./dom.js";
import {stateOf} from "./state.js";
import {rebuild} from "./tasks_panel.js";
import {TOUR} from "./tour.js";

export function showTour(focus = false) {
  const box = find("#tour"), place = app.state.tour ?? null;
  box.hidden = place === null;
  find("#tour-start").hidden = find(".subtitle").hidden = place !== null;
  if (place === null) return;
  const {title, text, tries} = TOUR[place];
  find("#tour-where").textContent = `Step ${place + 1} of ${TOUR.length}`;
  find("#tour-title").textContent = title;
  find("#tour-text").replaceChildren(...text.map((words) => element("p", {}, words)));
  find("#tour-back").disabled = place === 0;
  find("#tour-next").hidden = place === TOUR.length - 1;
  find("#tour-try").replaceChildren("Try:", ...tries.map(([words, parts]) => {
    const button = element("button", {type: "button"}, words);
    button.addEventListener("click", () => {
      const {family = app.state.family, parameters, ...rest} = parts;
      Object.assign(app.state, rest);
      if (parts.family || parameters) rebuild({family, parameters: parameters ?? {}});
      change(rest);
    });
    return button;
  }));
  if (focus) find("#tour-title").focus();
}

function goTo(place) {
  app.state = place === null ? {...app.state, tour: null} : stateOf({...TOUR[place].state, tour: place});
  showTour(true);
  later();
}

export function connectTour() {
  find("#tour-start").addEventListener("click", () => goTo(0));
  find("#tour-next").addEventListener("click", () => goTo(app.state.tour + 1));
  find("#tour-back").addEventListener("click", () => goTo(app.state.tour - 1));
  find("#tour-end").addEventListener("click", () => { goTo(null); find("#tour-start").focus(); });
}
