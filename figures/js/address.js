/** @file A figure's state in the address of its page: #fig=plane&query=1.3,1.2. */

/** A value as it stands in an address: numbers and words joined, anything else as JSON. */
function write(value) {
  const flat = Array.isArray(value) && value.length && value.every((x) => typeof x === typeof value[0]);
  if (flat && typeof value[0] === "number") return value.join(",");
  if (flat && typeof value[0] === "string") return value.join("+");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value that such a text stands for, of the kind of `now`; undefined if it is of another. */
function readValue(text, now) {
  try {
    let value;
    if (typeof now === "string") value = text;
    else if (Array.isArray(now) && typeof now[0] === "string") value = text.split("+");
    else if (Array.isArray(now) && typeof now[0] === "number") value = text.split(",").map(Number);
    else value = JSON.parse(text);
    const shape = (x) => (Array.isArray(x) ? "list" : x === null ? "none" : typeof x);
    const finite = !Array.isArray(value) || value.every((x) => typeof x !== "number" || Number.isFinite(x));
    const fits = shape(value) === shape(now) || ["none", "number"].includes(shape(now)) && ["none", "number"].includes(shape(value));
    return fits && finite ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The figure's name, and its number among those of that name on the page from the second on. */
function label(figure) {
  const name = figure.dataset.figure;
  const same = [...document.querySelectorAll(`.live[data-figure="${name}"]`)];
  const at = same.indexOf(figure);
  return at > 0 ? `${name}.${at + 1}` : name;
}

/** @param {HTMLElement} figure @param {Record<string, any>} state @returns {string} "#fig=…" */
export function toAddress(figure, state) {
  const escape = (text) => encodeURIComponent(text).replace(/%2C/g, ",").replace(/%2B/g, "+");
  return `#${[["fig", label(figure)], ...Object.entries(state).map(([name, value]) => [name, write(value)])]
    .map(([name, text]) => `${name}=${escape(text)}`)
    .join("&")}`;
}

/**
 * What the page's address says of the figure, as far as it is of the right kind; null if it speaks of none or another.
 * @param {HTMLElement} figure @param {Record<string, any>} now its state
 */
export function fromAddress(figure, now) {
  const said = new Map(
    location.hash
      .slice(1)
      .split("&")
      .map((part) => part.split("=").map((text) => { try { return decodeURIComponent(text) } catch { return "" } })),
  );
  if (said.get("fig") !== label(figure)) return null;
  const found = {};
  for (const [name, value] of Object.entries(now)) {
    const read = said.has(name) ? readValue(said.get(name), value) : undefined;
    if (read !== undefined) found[name] = read;
  }
  return found;
}
