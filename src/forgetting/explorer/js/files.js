// Files of a figure, as SVG and as PNG.

import {SVG, draw} from "./svg.js";

const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

/** A drawing with all its colours, which needs no style sheet. */
function standalone(svg) {
  const copy = svg.cloneNode(true), {width, height} = svg.viewBox.baseVal;
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((element, i) => {
    const css = getComputedStyle(element);
    for (const name of COPIED) if (css.getPropertyValue(name)) to[i].setAttribute(name, css.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-label"]) if (to[i] !== copy) to[i].removeAttribute(name);
  });
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(draw("rect", {width, height, fill: getComputedStyle(svg.parentElement).backgroundColor}));
  return {text: new XMLSerializer().serializeToString(copy), width, height};
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const svgFile = (svg) => new Blob([standalone(svg).text], {type: "image/svg+xml"});

export async function pngFile(svg) {
  const {text, width, height} = standalone(svg), image = new Image(), scale = 3;
  image.src = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
  await image.decode();
  const surface = Object.assign(document.createElement("canvas"), {width: width * scale, height: height * scale});
  surface.getContext("2d").drawImage(image, 0, 0, surface.width, surface.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => { surface.toBlob(done, "image/png"); });
}

export async function saveFigure(svg, name, ending) {
  save(`${name}.${ending}`, ending === "svg" ? svgFile(svg) : await pngFile(svg));
}
