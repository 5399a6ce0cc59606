/** @file What the figure of the two machines says. */

export const stepsWords = {
  titles: {
    recurrent: "Recurrent network: one cell after another",
    attention: "Self-attention: all pairs at once",
  },
  tokens: "tokens n",
  hint: "Broad lines: the path from the first token to the last.",
  counts: ({ done, of, doing, path }) => `step ${done} of ${of}, ${doing}; path from first to last: ${path} ${path === 1 ? "link" : "links"}`,
  doing: { before: "not begun", after: "done", scores: "scores", state: (step) => `state ${step}` },
  /** What the picture shows. costs: {recurrent, attention}, each {steps, path}. */
  describe: ({ tokens, step, costs: { recurrent, attention } }) => {
    const paths = `From token 1 to token ${tokens}: ${recurrent.path} ${recurrent.path === 1 ? "link" : "links"} against 1.`;
    const [slow, fast] = [recurrent, attention].map(({ steps }) => Math.max(0, steps - step));
    if (step === 0) return `Nothing has run yet. ${paths}`;
    if (slow === 0)
      return `Attention was done after ${attention.steps} steps, the recurrent network after ${recurrent.steps}. ${paths}`;
    const quick = fast ? `has ${fast} of ${attention.steps} steps left` : "is done";
    return `After step ${step}, attention ${quick}, the recurrent network has ${slow} of ${recurrent.steps}${fast ? "" : " steps left"}. ${paths}`;
  },
};
