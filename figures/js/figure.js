/** @file The frame of every live figure: its root, the line of tools under it, and its address. */

import { fromAddress, toAddress } from "./address.js";
import { button, html, set } from "./dom.js";
import { commonWords } from "./en/common.js";
import { LOOK } from "./look.js";
import { takePicture } from "./snapshot.js";

/**
 * Empty `el` and prepare it as the root of a figure. A notebook is sent what the figure shows at first, for when it is opened again.
 * @param {HTMLElement} el @param {string} name @param {any} model
 * @returns {HTMLElement}
 */
export function root(el, name, model) {
  const node = html("div", { class: `live live-${name}`, "data-figure": name });
  // JupyterLab's shortcuts would take the arrow keys away; it asks the very element that has the focus.
  node.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  el.replaceChildren(html("style", {}, LOOK), node);
  node.says = () => node.querySelector(".says").textContent;
  node.picture = (schemes = null) => takePicture(node, { words: node.says(), schemes });
  const keep = () => node.clientWidth && model.send({ picture: node.picture(["light", "dark"]), words: node.says() });
  if (model.send) setTimeout(keep, 300);
  return node;
}

/**
 * The tools under a figure: back to the start, a link to what is seen, the picture as a file. A page without a kernel
 * also starts from what its address says.
 * @param {HTMLElement} figure @param {any} model
 * @param {string[]} names the traits that make what is seen
 * @param {(state: Record<string, any>) => boolean} legal whether a state of the right kinds can be shown
 * @returns {() => void} takes the listeners away
 */
export function addTools(figure, model, names, legal) {
  const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const show = (state) => {
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    model.save_changes();
  };
  const start = now();
  const said = html("span", { class: "said", role: "status" });
  const tools = [
    button(commonWords.reset, () => show(start)),
    button(commonWords.saveSvg, () => {
      const url = URL.createObjectURL(new Blob([figure.picture()], { type: "image/svg+xml" }));
      html("a", { href: url, download: `${figure.dataset.figure}.svg` }).click();
      URL.revokeObjectURL(url);
      set(said, { text: commonWords.saved });
    }),
  ];
  const follow = () => {
    const found = fromAddress(figure, now());
    if (!found || !legal({ ...now(), ...found })) return;
    show(found);
    figure.scrollIntoView({ block: "nearest" });
  };
  const onStaticPage = !model.send;
  if (onStaticPage) {
    const copy = async () => {
      const address = toAddress(figure, now());
      history.replaceState(null, "", address);
      const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
      set(said, { text: copied ? commonWords.copied : commonWords.inAddress });
    };
    tools.splice(1, 0, button(commonWords.copyLink, copy));
    addEventListener("hashchange", follow);
  }
  figure.append(html("div", { class: "tools" }, ...tools, said));
  if (onStaticPage) follow();
  return () => removeEventListener("hashchange", follow);
}
