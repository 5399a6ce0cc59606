/** @file What a figure shows, as one SVG of its own: its words, boxes and drawings where they stand, without the controls. */

const SPACE = 'xmlns="http://www.w3.org/2000/svg"';
const PAPER = { light: "#ffffff", dark: "#14171d" };
// What of an SVG element says where it is, and how it looks.
const PLACED = "x y x1 x2 y1 y2 cx cy r rx width height d points transform".split(" ");
const LOOKS = "fill-opacity stroke-opacity stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity".split(" ");
const LETTERS = "font-size font-weight font-style text-anchor text-decoration-line".split(" ");
const PLAIN = new Set(["none", "normal", "0px", "1", "1px", "400", "butt", "miter", "start", "auto"]);

const pen = () => new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rounded = (x) => String(Math.round(x * 10) / 10);
const escapeText = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const attributes = (pairs) => Object.entries(pairs).map(([name, value]) => ` ${name}="${value}"`).join("");

/** Any colour of CSS as {colour, alpha}; null for one that cannot be seen. */
function readColour(context, colour) {
  if (colour === "none" || colour === "transparent") return null;
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
  if (alpha === 0) return null;
  const hex = [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
  return { colour: `#${hex}`, alpha: Math.round((alpha / 255) * 100) / 100 };
}

/**
 * Rectangles that look alike as one path each, where they lie apart and their order does not matter.
 * @param {{piece: any, name: string}[]} drawn pieces with the class of each
 */
function joinRects(drawn) {
  const alike = new Map();
  drawn.forEach(({ piece, name }, i) => {
    const key = piece.apart && piece.rect ? `${piece.apart} ${name}` : i;
    alike.set(key, [...(alike.get(key) ?? []), { piece, name }]);
  });
  return [...alike.values()].map((group) => {
    const [{ piece, name }] = group;
    if (typeof piece === "string") return piece;
    if (group.length === 1) return piece.markup(` class="${name}"`);
    const square = ({ rect }) => `M${rect.x} ${rect.y}h${rect.width}v${rect.height}h-${rect.width}z`;
    return `<path d="${group.map((one) => square(one.piece)).join("")}" class="${name}"/>`;
  });
}

/**
 * What `node` shows now: a list of pieces in the order in which they are painted.
 * A piece is {markup: (looks) => string, looks: {property: value}} or a string.
 */
function readPieces(node) {
  const context = pen();
  const box = node.getBoundingClientRect();
  const pieces = [];
  const seen = new Map();
  const colourOf = (text) => {
    if (!seen.has(text)) seen.set(text, readColour(context, text));
    return seen.get(text);
  };
  const paint = (looks, property, colour, opacity = 1) => {
    const found = colourOf(colour);
    looks[property] = found ? found.colour : "none";
    const alpha = found ? Math.round(found.alpha * opacity * 100) / 100 : 1;
    if (alpha < 1) looks[`${property}-opacity`] = alpha;
    return found !== null && alpha > 0;
  };
  const add = (tag, where, looks, inner = "") =>
    pieces.push({ looks, markup: (look) => `<${tag}${attributes(where)}${look}${inner ? `>${inner}</${tag}>` : "/>"}` });

  function readBox(element, style, { left, top, width, height }) {
    if (!width || !height) return;
    const where = { x: rounded(left - box.left), y: rounded(top - box.top), width: rounded(width), height: rounded(height) };
    const round = Math.min(parseFloat(style.borderTopLeftRadius) || 0, width / 2, height / 2);
    const rx = style.borderTopLeftRadius.endsWith("%") ? width / 2 : round;
    if (rx) where.rx = rounded(rx);
    const looks = {};
    const filled = paint(looks, "fill", style.backgroundColor);
    const ring = /^(.+\)) 0px 0px 0px ([\d.]+)px/.exec(style.boxShadow);
    const [line, colour] = ring ? [ring[2], ring[1]] : [parseFloat(style.borderTopWidth) && parseFloat(style.borderLeftWidth), style.borderTopColor];
    if (Number(line) && paint(looks, "stroke", colour)) {
      looks["stroke-width"] = line;
      if (style.borderTopStyle === "dashed") looks["stroke-dasharray"] = "3 2";
    }
    if (filled || looks.stroke) add("rect", where, looks);
  }

  /** Each line of a text where it stands. */
  function readText(text, style) {
    const looks = {};
    if (!paint(looks, "fill", style.color)) return;
    for (const name of LETTERS) if (!PLAIN.has(style[name])) looks[name] = style[name];
    context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const ascent = context.measureText("x").fontBoundingBoxAscent;
    const range = document.createRange();
    const lines = [];
    for (const { index, 0: word } of text.data.matchAll(/\S+/g)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const { left, top, width } = range.getBoundingClientRect();
      if (!width) continue;
      const line = lines.at(-1);
      if (line && Math.abs(line.top - top) < 2) line.words.push(word);
      else lines.push({ left, top, words: [word] });
    }
    for (const { left, top, words } of lines) {
      const where = { x: rounded(left - box.left), y: rounded(top - box.top + ascent) };
      add("text", where, looks, escapeText(words.join(" ")));
    }
  }

  /** An element within an <svg>, and what it holds. */
  function readDrawn(element) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.opacity === "0" || element.tagName === "title") return;
    const where = Object.fromEntries(PLACED.filter((name) => element.hasAttribute(name)).map((name) => [name, element.getAttribute(name).replace(/\d+\.\d+/g, (x) => rounded(Number(x)))]));
    if (element.tagName === "g") {
      const opacity = style.opacity === "1" ? {} : { opacity: rounded(style.opacity * 100) / 100 };
      const before = pieces.length;
      pieces.push(`<g${attributes({ ...where, ...opacity })}>`);
      [...element.children].forEach(readDrawn);
      if (element.dataset.apart !== undefined) for (const piece of pieces.slice(before + 1)) piece.apart = before;
      if (pieces.length === before + 1) pieces.pop();
      else pieces.push("</g>");
      return;
    }
    if (style.visibility === "hidden" || where.width === "0" || where.height === "0") return;
    const looks = {};
    const seen = ["fill", "stroke"].map((name) => paint(looks, name, style[name], Number(style[`${name}-opacity`])));
    if (!seen.includes(true)) return;
    for (const name of LOOKS) {
      if (name.startsWith("stroke") && !seen[1]) continue;
      if (name === "fill-opacity" || name === "stroke-opacity" || PLAIN.has(style[name])) continue;
      looks[name] = style[name].replace(/px/g, "").replace(/\d*\.\d{3,}/g, (x) => String(Math.round(x * 100) / 100));
    }
    if (!seen[1]) delete looks.stroke;
    const text = element.tagName === "text" ? element.textContent : "";
    if (element.tagName === "text") {
      if (!text) return;
      for (const name of LETTERS) if (!PLAIN.has(style[name])) looks[name] = style[name];
      for (const name of ["dx", "dy"]) if (element.hasAttribute(name)) where[name] = element.getAttribute(name);
      if (seen[1]) looks["paint-order"] = "stroke";
    }
    add(element.tagName, where, looks, escapeText(text));
    pieces.at(-1).rect = element.tagName === "rect" && where;
  }

  function read(element) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
    if (element.matches("style, option, input, .sr")) return;
    const place = element.getBoundingClientRect();
    if (element instanceof SVGElement) {
      const view = element.viewBox.baseVal;
      const where = { x: rounded(place.left - box.left), y: rounded(place.top - box.top), width: rounded(place.width), height: rounded(place.height) };
      if (view?.width) where.viewBox = `${view.x} ${view.y} ${view.width} ${view.height}`;
      pieces.push(`<svg${attributes(where)} font-size="${style.fontSize}" overflow="visible">`);
      [...element.children].forEach(readDrawn);
      pieces.push("</svg>");
      return;
    }
    if (element instanceof HTMLCanvasElement) {
      const where = { x: rounded(place.left - box.left), y: rounded(place.top - box.top), width: rounded(place.width), height: rounded(place.height), preserveAspectRatio: "none" };
      const src = element.toDataURL("image/webp", 0.6);
      pieces.push(`<image${attributes({ ...where, opacity: style.opacity, href: src })}/>`);
      return;
    }
    readBox(element, style, place);
    for (const child of element.childNodes) {
      if (child instanceof Element) read(child);
      else if (child instanceof Text) readText(child, style);
    }
  }
  read(node);
  return pieces;
}

/**
 * What `node` shows, as the text of an SVG file. With both schemes it follows the reader's.
 * @param {HTMLElement} node the root of a figure @param {{words: string, schemes?: ("light" | "dark")[]}} options
 *   words: what it shows, in a sentence; schemes: the one that it is seen in unless given
 */
export function takePicture(node, { words, schemes = null }) {
  node.classList.add("still"); // nothing to press, and no motion
  const { colorScheme } = node.style;
  const own = getComputedStyle(node).colorScheme;
  const now = own === "light dark" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : own;
  const wanted = schemes ?? [now];
  const read = wanted.map((scheme) => {
    if (schemes) node.style.colorScheme = scheme;
    return readPieces(node);
  });
  const { width, height } = node.getBoundingClientRect();
  const font = getComputedStyle(node).fontFamily.replace(/"/g, "'");
  node.style.colorScheme = colorScheme;
  node.classList.remove("still");

  const classes = new Map(); // the looks in each scheme -> a class
  const classOf = (looks) => {
    const key = JSON.stringify(looks);
    if (!classes.has(key)) classes.set(key, { name: `c${classes.size}`, looks });
    return classes.get(key).name;
  };
  const drawn = read[0].map((piece, i) => ({
    piece,
    name: typeof piece === "string" ? "" : classOf(read.map((pieces) => pieces[i].looks)),
  }));
  const rules = (i) =>
    [...classes.values()]
      .filter(({ looks }) => i === 0 || JSON.stringify(looks[i]) !== JSON.stringify(looks[0]))
      .map(({ name, looks }) => `.${name}{${Object.entries(looks[i]).map(([p, value]) => `${p}:${value}`).join(";")}}`)
      .join("");
  const dark = wanted.length > 1 ? `@media(prefers-color-scheme:dark){.ground{fill:${PAPER[wanted[1]]}}${rules(1)}}` : "";
  const [w, h] = [Math.round(width), Math.round(height)];
  return (
    `<svg ${SPACE} role="img" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="${font}">` +
    `<desc>${escapeText(words)}</desc><style>.ground{fill:${PAPER[wanted[0]]}}${rules(0)}${dark}</style>` +
    `<rect class="ground" width="100%" height="100%" rx="10"/>${joinRects(drawn).join("")}</svg>`
  );
}
