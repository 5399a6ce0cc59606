/** @file What the figure of the cheating model says. */

import { counted } from "./common.js";

/** A share as a percentage that is 0 or 100 only if it is. */
function wholePercent(share) {
  const rounded = Math.round(100 * share);
  if (share > 0 && rounded === 0) return "under 1 %";
  if (share < 1 && rounded === 100) return "over 99 %";
  return `${rounded} %`;
}

const nats = (loss) => (loss >= 0.1 ? loss.toFixed(2) : loss.toPrecision(2));

export const cheatingWords = {
  wholePercent,
  mask: "causal mask",
  on: "on",
  off: "off",
  time: "after step",
  sight: "What each position may see",
  sightLabel: (masked, count) =>
    `${count} positions. Each sees ${masked ? "itself and what came before it" : "all words, the one that it has to say included"}.`,
  caption: (masked) =>
    masked
      ? "Each position sees what came before it, and has to say the word after →."
      : "Each position sees the very word that it has to say (orange). It need only copy it.",
  say: (word) => `→ ${word}`,
  chart: "Training loss, nats a word, against steps",
  chartLabel: (text) => `Training loss against steps, with and without the mask. ${text}`,
  note: (step) => `step ${counted(step)}`,
  curves: { masked: "mask on", unmasked: "mask off" },
  written: (step) => (step === 0 ? "What it writes before training" : `What it writes after ${counted(step)} steps`),
  nothing: "(nothing)",
  hint: (alone) =>
    "Recorded while two models were trained from the same start, one with the mask and one without." +
    (alone ? " Dashed: the loss on other sentences, one position at a time, where no later word is there." : ""),
  /** What the picture shows: loss, and what was recorded last of the rest, or null. */
  describe: ({ masked, step, loss, accepted, alone }) => {
    const when = step === 0 ? "before training" : `after ${counted(step)} ${step === 1 ? "step" : "steps"}`;
    const training = `${masked ? "With" : "Without"} the mask, ${when}, the training loss is ${nats(loss)} nats a word`;
    const really = alone === null ? "" : `; where the next word is not there to be seen, ${nats(alone)}`;
    const writes =
      accepted === null ? "" : ` Of the sentences that it writes, ${wholePercent(accepted)} fit the grammar.`;
    return `${training}${really}.${writes}`;
  },
};
