/** @file What a mouse, a pen or a finger chooses in a drawing: a finger's swipe scrolls the page and chooses nothing. */

const NEAR = 8; // px within which a finger rests

/** Where an event lies in the units of an <svg>. @param {SVGSVGElement} node @param {{clientX: number, clientY: number}} event */
export const placeIn = (node, { clientX, clientY }) =>
  new DOMPoint(clientX, clientY).matrixTransform(node.getScreenCTM().inverse());

/**
 * Call `choose` with the places that are chosen in `node`. A mouse or a pen acts at once and while it is pressed; a finger
 * acts with a tap, and while it is drawn across (its first move decides); what goes up or down is the page's.
 * Other buttons than the first choose nothing.
 * @param {SVGSVGElement} node @param {(place: DOMPoint) => void} choose
 */
export function chooseIn(node, choose) {
  node.classList.add("drawn");
  let start = null; // where a finger came down
  let held = false;
  node.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button !== 0) return;
    start = event;
    held = event.pointerType !== "touch";
    if (!held) return;
    node.setPointerCapture(event.pointerId);
    choose(placeIn(node, event));
  });
  node.addEventListener("pointermove", (event) => {
    if (!start || event.pointerId !== start.pointerId) return;
    const [dx, dy] = [event.clientX - start.clientX, event.clientY - start.clientY].map(Math.abs);
    if (!held && Math.max(dx, dy) > NEAR) {
      if (dy > dx) return void (start = null);
      held = true;
      node.setPointerCapture(event.pointerId);
    }
    if (held) choose(placeIn(node, event));
  });
  node.addEventListener("pointerup", (event) => {
    if (start && !held && event.pointerId === start.pointerId) choose(placeIn(node, event));
    start = null;
  });
  node.addEventListener("pointercancel", () => (start = null));
}
