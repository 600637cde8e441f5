// What a reader would stumble over on this page: {contrast, cut, overlap, name, markup}, each a list of descriptions.
(() => {
  const ROOT = document.documentElement, LIMIT = 30;
  const SILENT = "script,style,noscript,template,head,title,desc,option,[aria-hidden=true],:disabled,:disabled *";
  const styles = new Map();
  const style = element => styles.get(element) || styles.set(element, getComputedStyle(element)).get(element);
  const ancestors = element => { const all = []; for (; element; element = element.parentElement) all.push(element); return all; };

  function describe(element, words) {
    const parts = [];
    for (const one of ancestors(element)) {
      const kinds = [...one.classList].slice(0, 2).map(name => "." + name).join("");
      parts.unshift(one.localName + (one.id ? "#" + one.id : kinds));
      if (one.id || parts.length > 4) break;
    }
    const text = words.trim().replace(/\s+/g, " ");
    return `${parts.join(" > ")} "${text.length > 40 ? text.slice(0, 38) + "..." : text}"`;
  }

  // Text for screen readers only: clipped to a point, or placed beyond the edges of the page on purpose.
  function unseen(element, box) {
    for (const one of ancestors(element)) {
      const css = style(one), size = one.getBoundingClientRect();
      if (css.clipPath === "inset(50%)" || css.clipPath === "inset(100%)" || css.clip.startsWith("rect(0px, 0px, 0px")) return true;
      if (css.overflowX !== "visible" && size.width <= 1 && size.height <= 1) return true;
      if (css.position === "fixed" && (box.right <= 0 || box.bottom <= 0 || box.left >= innerWidth || box.top >= innerHeight)) return true;
    }
    return box.bottom + scrollY <= 0 || box.right + scrollX <= 0;
  }

  // ---------------------------------------------------------------------------------- the visible pieces of text

  const corners = box => [[box.left, box.top], [box.right, box.top], [box.right, box.bottom], [box.left, box.bottom]];

  function turned(element) {  // the corners of SVG text as it is drawn, which may be rotated
    const {x, y, width, height} = element.getBBox(), matrix = element.getScreenCTM();
    return corners({left: x, top: y, right: x + width, bottom: y + height})
      .map(([a, b]) => [matrix.a * a + matrix.c * b + matrix.e, matrix.b * a + matrix.d * b + matrix.f]);
  }

  function texts() {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (!node.data.trim() || element.closest(SILENT)) continue;
      if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true})) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const svg = Boolean(element.ownerSVGElement), boxes = [...range.getClientRects()].filter(box => box.width > 0 && box.height > 0);
      if (!boxes.length || unseen(element, range.getBoundingClientRect())) continue;
      const alone = svg && element.childNodes.length === 1;
      const shapes = alone ? [turned(element)] : boxes.map(corners);
      found.push({element, svg, words: node.data, boxes, shapes, unit: svg ? element.closest("text") : element});
    }
    for (const element of document.querySelectorAll("input, select, textarea")) {
      const box = element.getBoundingClientRect();
      if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true}) || element.closest(SILENT)) continue;
      if (!box.width || !box.height || unseen(element, box)) continue;
      const drawn = ["range", "checkbox", "radio", "color", "file", "image"].includes(element.type);
      const words = drawn ? "" : element.value || element.placeholder || "";
      found.push({element, svg: false, words, control: true, hint: !element.value, boxes: [box], shapes: [corners(box)], unit: element});
    }
    return found;
  }

  // ------------------------------------------------------------------------------------------------- (a) contrast

  const brush = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});
  const colours = new Map();
  function colour(text) {  // [red, green, blue, alpha], each 0 to 1
    if (!colours.has(text)) {
      const numbers = /^rgba?\(/.test(text) ? text.match(/[\d.]+/g).map(Number) : null;
      if (numbers) colours.set(text, [...numbers.slice(0, 3).map(v => v / 255), numbers[3] ?? 1]);
      else {
        brush.clearRect(0, 0, 1, 1);
        brush.fillStyle = text;
        brush.fillRect(0, 0, 1, 1);
        colours.set(text, [...brush.getImageData(0, 0, 1, 1).data].map(v => v / 255));
      }
    }
    return colours.get(text);
  }
  const mix = (top, below, share) => [0, 1, 2].map(i => share * top[i] + (1 - share) * below[i]);
  const hex = rgb => "#" + rgb.map(v => Math.round(255 * v).toString(16).padStart(2, "0")).join("");
  const light = rgb => rgb.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };

  function canvas() {  // behind everything: white, or what the colour scheme of the page says
    const probe = document.createElement("i");
    probe.style.backgroundColor = "Canvas";
    document.body.append(probe);
    const found = colour(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return found.slice(0, 3);
  }
  const base = canvas();

  const painted = new Map();
  function shapesBelow(element) {  // what is drawn before this text, in the same SVG, and lies under its middle
    const svg = element.ownerSVGElement, box = element.getBoundingClientRect();
    if (!painted.has(svg)) {
      const all = [...svg.querySelectorAll("rect, path, circle, ellipse, polygon")].filter(one => !one.closest("defs, clipPath, mask"));
      painted.set(svg, all.filter(one => style(one).fill !== "none" && one.checkVisibility()).map(one => [one, one.getBoundingClientRect()]));
    }
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    return painted.get(svg).filter(([one, size]) => {
      if (size.left > x || size.right < x || size.top > y || size.bottom < y) return false;
      if (!(one.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) return false;
      return one.isPointInFill(new DOMPoint(x, y).matrixTransform(one.getScreenCTM().inverse()));
    }).map(([one]) => one);
  }

  // The colours of the text and of what is behind it; an element with opacity is blended as a whole, with its text.
  function seen(chain, place, below, ink, shapes) {
    const css = style(chain[place]), fill = chain[place].ownerSVGElement ? [0, 0, 0, 0] : colour(css.backgroundColor);
    let ground = mix(fill, below, fill[3]);
    let pair;
    if (place < chain.length - 1) pair = seen(chain, place + 1, ground, ink, shapes);
    else {
      for (const shape of shapes) {
        const own = colour(style(shape).fill), faint = ancestors(shape).reduce((all, one) => one.ownerSVGElement ? all * style(one).opacity : all, 1);
        ground = mix(own, ground, own[3] * style(shape).fillOpacity * faint);
      }
      pair = [mix(ink, ground, ink[3]), ground];
    }
    return pair.map(one => mix(one, below, Number(css.opacity)));
  }

  function contrast(all) {
    const found = new Map();
    for (const {element, svg, words, hint} of all) {
      if (!words) continue;
      const css = hint && element.placeholder ? getComputedStyle(element, "::placeholder") : style(element);
      const paint = svg ? css.fill : css.color;
      if (paint === "none" || paint.startsWith("url")) continue;
      const ink = [...colour(paint)];
      if (svg) ink[3] *= css.fillOpacity;
      const [text, ground] = seen(ancestors(element).reverse(), 0, base, ink, svg ? shapesBelow(element) : []);
      const matrix = svg ? element.getScreenCTM() : null;
      const size = parseFloat(css.fontSize) * (matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1);
      const least = size >= 24 || (size >= 18.66 && css.fontWeight >= 700) ? 3 : 4.5, got = ratio(text, ground);
      if (got >= least - 0.005) continue;
      const path = describe(element, "").slice(0, -3), key = `${path} ${hex(text)} ${hex(ground)}`, more = found.get(key);
      if (more) more.count += 1;
      else found.set(key, {count: 1, said: `${describe(element, words)} ${hex(text)} on ${hex(ground)} is ${got.toFixed(2)}, needs ${least}`});
    }
    return [...found.values()].map(({said, count}) => said + (count > 1 ? ` (and ${count - 1} like it)` : ""));
  }

  // ------------------------------------------------------------------------------------------------- (b) cut text

  // Walks from a box to the window; `cut` is called with each edge that hides a part of it. The visible part, or null.
  function visiblePart(element, box, cut) {
    let {left, right, top, bottom} = box, floats = false;
    for (const one of ancestors(element)) {
      const css = style(one);
      if (one.ownerSVGElement || (floats && css.position === "static")) continue;  // only a positioned box holds an absolute one
      floats = css.position === "absolute";
      if (css.overflowX !== "visible" && (css.display !== "inline" || one.localName === "svg") && one !== document.body && one !== ROOT) {
        const size = one.getBoundingClientRect(), scrolls = ["auto", "scroll"].includes(css.overflowX);
        const beside = Math.max(size.left - left, right - size.right), above = Math.max(size.top - top, bottom - size.bottom);
        if (!scrolls && css.textOverflow !== "ellipsis" && beside > 1) cut(one, beside);
        else if (one.localName === "svg" && above > 0.3 * (bottom - top)) cut(one, above);
        left = Math.max(left, size.left), right = Math.min(right, size.right);
        top = Math.max(top, size.top), bottom = Math.min(bottom, size.bottom);
        if (left >= right || top >= bottom) return null;
      }
      if (css.position === "fixed") break;
    }
    const beside = Math.max(-scrollX - left, right - innerWidth);
    if (beside > 1) cut(ROOT, beside);
    return {left, right, top, bottom};
  }

  function cuts(all) {
    const found = [];
    if (ROOT.scrollWidth > innerWidth + 1) {
      const wide = [...document.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > innerWidth + 1);
      const outer = wide.find(one => ancestors(one).slice(1).every(above => !["auto", "scroll", "hidden", "clip"].includes(style(above).overflowX) || above === document.body || above === ROOT));
      found.push(`the page is ${ROOT.scrollWidth} px wide in a window of ${innerWidth}` + (outer ? `: ${describe(outer, outer.textContent)}` : ""));
    }
    for (const {element, boxes, words} of all) {
      const said = new Set();
      for (const box of boxes) {
        visiblePart(element, box, (edge, by) => said.add(`${describe(element, words)} sticks out of ${edge === ROOT ? "the window" : describe(edge, "").slice(0, -3)} by ${by.toFixed(0)} px`));
      }
      found.push(...[...said].slice(0, 1));
    }
    return found;
  }

  // --------------------------------------------------------------------------------------------- (c) overlapping text

  function depth(one, two) {  // how far two convex shapes reach into each other: the least over the directions of their edges
    let least = Infinity;
    for (const shape of [one, two]) {
      for (const i of [0, 1]) {
        const [x, y] = [shape[i + 1][1] - shape[i][1], shape[i][0] - shape[i + 1][0]], length = Math.hypot(x, y);
        if (!length) return 0;
        const [a, b] = [one, two].map(all => all.map(point => (point[0] * x + point[1] * y) / length));
        least = Math.min(least, Math.min(Math.max(...a), Math.max(...b)) - Math.max(Math.min(...a), Math.min(...b)));
      }
    }
    return least;
  }

  const trimmed = ([a, b, c, d]) => {  // without the space above and below the letters, which every font keeps
    const part = (from, to) => [from[0] + 0.14 * (to[0] - from[0]), from[1] + 0.14 * (to[1] - from[1])];
    return [part(a, d), part(b, c), part(c, b), part(d, a)];
  };

  function overlaps(all) {
    const items = [];
    for (const one of all) {
      if (ancestors(one.element).some(above => ["sticky", "fixed"].includes(style(above).position))) continue;
      for (const shape of one.shapes) {
        const xs = shape.map(point => point[0]), ys = shape.map(point => point[1]);
        const box = {left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys)};
        const part = visiblePart(one.element, box, () => {});
        if (!part) continue;
        const whole = one.svg || (part.left === box.left && part.right === box.right && part.top === box.top && part.bottom === box.bottom);
        items.push({...one, box, shape: trimmed(whole ? shape : corners(part))});
      }
    }
    items.sort((one, two) => one.box.top - two.box.top);
    const found = [], pairs = new Set();
    items.forEach((one, i) => {
      for (let j = i + 1; j < items.length && items[j].box.top < one.box.bottom; j++) {
        const two = items[j];
        if (one.unit === two.unit || one.box.left > two.box.right || two.box.left > one.box.right) continue;
        if (one.element.contains(two.element) && two.element.closest("sup, sub")) continue;
        if (two.element.contains(one.element) && one.element.closest("sup, sub")) continue;
        const by = depth(one.shape, two.shape);
        const said = `${describe(one.element, one.words)} and ${describe(two.element, two.words)} overlap by ${by.toFixed(1)} px`;
        if (by > 2 && !pairs.has(said)) { pairs.add(said); found.push(said); }
      }
    });
    return found;
  }

  // -------------------------------------------------------------------------------------------- (d) names of controls

  function nameOf(element) {
    const by = (element.getAttribute("aria-labelledby") || "").split(/\s+/).map(id => id && document.getElementById(id)?.textContent);
    const inner = [...element.querySelectorAll("img[alt], [aria-label], svg title")].map(one => one.getAttribute("alt") || one.getAttribute("aria-label") || one.textContent);
    const button = ["submit", "button", "reset"].includes(element.type) ? element.value : "";
    const labels = [...(element.labels || [])].map(label => label.textContent);
    const all = [element.getAttribute("aria-label"), ...by, ...labels, element.textContent, ...inner, button, element.title, element.placeholder];
    return all.find(words => words && words.trim()) || "";
  }

  function names() {
    const found = [];
    for (const element of document.querySelectorAll("button, input:not([type=hidden]), select, textarea, summary, a[href], [role=button]")) {
      if (element.closest("[aria-hidden=true], :disabled") || !element.checkVisibility({visibilityProperty: true})) continue;
      if (!nameOf(element)) found.push(`${describe(element, "").slice(0, -3)} has no name for a screen reader`);
    }
    return found;
  }

  // ------------------------------------------------------------------------------------- (e) markup that nobody rendered

  function markup(all) {
    const raw = all.filter(({element, words}) => /\$\\|\\math|[\^_]\{|\[object /.test(words) && !element.closest("pre, code"));
    return raw.map(({element, words}) => `${describe(element, words)} shows its source`);
  }

  const few = list => list.length > LIMIT ? [...list.slice(0, LIMIT), `... and ${list.length - LIMIT} more`] : list;
  const all = texts();
  return {contrast: few(contrast(all)), cut: few(cuts(all)), overlap: few(overlaps(all)), name: few(names()), markup: few(markup(all))};
})()
