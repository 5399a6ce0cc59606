/** @file What every figure says. A translation is a folder beside this one, with the same files. */

export const commonWords = {
  reset: "reset",
  copyLink: "copy link",
  copied: "The link to what you see is copied.",
  inAddress: "The address of the page leads to what you see.",
  saveSvg: "save as SVG",
  saved: "The picture is saved.",
  play: "play",
  pause: "pause",
  step: "step",
};

/** Things in a row: "a, b and c". @param {(string | number)[]} things */
export const inWords = (things) =>
  things.length > 1 ? `${things.slice(0, -1).join(", ")} and ${things.at(-1)}` : String(things[0] ?? "");

export const quoted = (word) => `“${word}”`;
export const counted = (number) => number.toLocaleString("en");
