/** @file A button that takes one step after another, and stands still for a reader who wants nothing to move. */

import { button, set } from "./dom.js";
import { commonWords } from "./en/common.js";

/**
 * @param {{get: () => number, end: () => number, go: (step: number) => void, pace: number}} steps pace in ms
 * @returns {{node: HTMLElement, next: () => void, stop: () => void}} next: one step, or back to 0 from the last
 */
export function createPlayer({ get, end, go, pace }) {
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    set(node, { text: commonWords.play });
  };
  const ahead = () => {
    const step = Math.min(end(), get() + 1);
    if (step >= end()) stop();
    go(step);
  };
  const toggle = () => {
    if (timer) return stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return go(end());
    if (get() >= end()) go(0);
    timer = setInterval(ahead, pace);
    set(node, { text: commonWords.pause });
  };
  const node = button(commonWords.play, toggle);
  const next = () => {
    stop();
    if (get() >= end()) go(0);
    else ahead();
  };
  return { node, next, stop };
}
