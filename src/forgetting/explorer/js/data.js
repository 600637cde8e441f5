// What Python wrote into the page. BOUNDS, the bounds of the registry as functions, is inserted after this module.

export const DATA = JSON.parse(document.getElementById("data").textContent);
export const stepIndex = new Map(DATA.steps.map((k, place) => [k, place]));
