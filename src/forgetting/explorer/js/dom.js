// Elements of the page.

export const find = (selector) => document.querySelector(selector);

export const element = (tag, attributes = {}, ...inner) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...inner);
  return made;
};

/** Gives a choice its options: the words of each value. */
export function fill(select, options) {
  select.replaceChildren(...options.map(([value, words]) => element("option", {value}, words)));
}

/** Shows a value in a control, unless somebody is typing there. */
export function set(selector, value) {
  const control = find(selector), typed = ["text", "number"].includes(control.type);
  if (control !== document.activeElement || !typed) control.value = value;
}
