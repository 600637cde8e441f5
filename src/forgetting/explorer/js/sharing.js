// What is given to others: the address, and the lines of Python.

import {app} from "./app.js";
import {toHash} from "./address.js";
import {find} from "./dom.js";
import {toPython} from "./python.js";

const pythonNow = () => toPython(app.state);
let timer = 0, written = "";

/** What need not be there in each frame: the address, the words for screen readers, the lines of Python. */
export function quietly() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    find("#said").textContent = app.computed.words;
    written = `#${toHash(app.state)}`;
    try { history.replaceState(null, "", written); } catch { /* a page within a page has no address of its own */ }
    if (find("#python").open) find("#python pre").textContent = pythonNow();
  }, 350);
}

/** Whether the address is the one that the page itself has written. */
export const isWritten = (hash) => hash === written;

const framed = () => location.protocol === "about:";  // a frame of a notebook has no address of its own

async function copy(words, done) {
  const shown = find("#python pre");
  try { await navigator.clipboard.writeText(words); find("#copied").textContent = done; } catch {
    shown.textContent = words;
    getSelection().selectAllChildren(shown);
    find("#copied").textContent = `Selected: press Ctrl+C. ${done.replace(/^[^.]*\. ?/, "")}`;
  }
}

export function connectSharing() {
  find("#python").addEventListener("toggle", () => { find("#python pre").textContent = pythonNow(); });
  find("#copy").addEventListener("click", () => copy(pythonNow(), "Copied."));
  find("#link").addEventListener("click", () => framed()
    ? copy(`explorer.html#${toHash(app.state)}`, "Address copied. It opens this view in a page that fg.explore(tasks, \"explorer.html\") has written.")
    : copy(`${location.href.split("#")[0]}#${toHash(app.state)}`, "Address copied."));
}
