/** @file One look for all live figures, in light and dark, for fingers, for print and for forced colours. */

/**
 * One colour for each head or key, the same in every figure, static ones too (figures/look.py). They differ for readers
 * without green cones, and have a contrast of 4.5 with the ground, so that words may be written in them.
 */
export const COLOURS = ["--blue", "--orange", "--teal", "--wine", "--gold"].map((name) => `var(${name})`);

export const LOOK = `
.live {
  color-scheme: light dark;
  --ink: light-dark(#1d2330, #e7e9ee); --quiet: light-dark(#586070, #a9b0bd); --line: light-dark(#d5d9e0, #3d4452);
  --wash: light-dark(#f3f5f8, #232833); --raised: light-dark(#ffffff, #2c323f); --focus: light-dark(#0b5cad, #7cc0ff);
  --blue: light-dark(#065393, #3898f8); --orange: light-dark(#c74306, #f9920f); --teal: light-dark(#017d6a, #22b086);
  --wine: light-dark(#6b0d3c, #fea2da); --gold: light-dark(#665f02, #fcf296); --slate: light-dark(#56607a, #aeb8d0);
  --q: var(--blue); --k: var(--orange); --v: var(--teal);
  --target: 1.9rem;
  box-sizing: border-box; container-type: inline-size; max-width: 60rem; margin: .5rem auto; padding: 2px;
  color: var(--ink); font: 400 1rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
html[data-theme=dark] .live, body[data-jp-theme-light=false] .live, html[theme=dark] .live, body.vscode-dark .live { color-scheme: dark }
html[data-theme=light] .live, body[data-jp-theme-light=true] .live, body.vscode-light .live { color-scheme: light }
@media (pointer: coarse) { .live { --target: 2.75rem } }
.live *, .live *::before { box-sizing: border-box }
.live .sr { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.live svg { display: block; max-width: none }
.live svg text { fill: var(--quiet); font: inherit }
.live fieldset { min-width: 0; margin: 0; padding: 0; border: 0 }
.live p { margin: 0 }
.live .controls, .live .buttons { display: flex; flex-wrap: wrap; gap: .4rem 1.25rem; align-items: center }
.live .buttons { gap: .35rem }
.live .halves { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .75rem 2rem; align-items: start }
.live .halves > * { min-width: 0 }
.live .choice { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .55rem }
.live .choice legend { float: left; padding: 0; width: auto; font-size: .875rem; color: var(--quiet) }
.live .options { display: inline-flex; flex-wrap: wrap; padding: 2px; border-radius: 8px; background: var(--wash) }
.live .options label { position: relative; display: inline-flex }
.live .options input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer }
.live .options span { display: inline-flex; align-items: center; justify-content: center; gap: .35rem; min-width: var(--target); min-height: var(--target); padding: 0 .6rem; border-radius: 6px; font-size: .875rem; color: var(--quiet) }
.live .options :checked + span { background: var(--raised); color: var(--ink); font-weight: 600; box-shadow: 0 0 0 1px var(--line) }
.live :focus-visible, .live :focus-visible + span { outline: 2px solid var(--focus); outline-offset: 2px }
.live .dot { flex: none; width: .6rem; height: .6rem; border-radius: 50% }
.live button, .live select { min-height: var(--target); margin: 0; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); color: var(--ink); font: inherit; font-size: .875rem; max-width: 100% }
.live button { min-width: var(--target); padding: .15rem .7rem; cursor: pointer }
.live select { padding: 0 .3rem }
.live button:hover { border-color: var(--quiet) }
.live button:disabled { opacity: .55; cursor: default }
.live button[aria-pressed=true]:not(.head) { background: var(--ink); border-color: var(--ink); color: light-dark(#fff, #1d2330) }
.live .slider { display: grid; grid-template-columns: minmax(0, 5.5rem) minmax(3rem, 1fr) auto; gap: .6rem; align-items: center; font-size: .875rem; color: var(--quiet) }
.live .slider input { width: 100%; min-width: 0; margin: 0; height: var(--target); accent-color: var(--slate); border-radius: 6px; touch-action: pan-y }
.live .slider .number { min-width: 2.6rem }
.live .number { color: var(--ink); font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap }
.live .sentence { position: relative; margin: .6rem 0; max-width: 46em }
.live .says { min-height: 2.9em; font-size: 1.0625rem; overflow-wrap: anywhere }
.live .hint { font-size: .8125rem; color: var(--quiet) }
.live .heading { margin: 0 0 .3rem; font-size: .875rem; font-weight: 600; color: var(--ink); letter-spacing: 0 }
.live .drawn { touch-action: pan-y pinch-zoom }
.live .tools { display: flex; flex-wrap: wrap; gap: .1rem .5rem; align-items: center; margin-top: .5rem }
.live .tools button { border-color: transparent; background: none; padding: 0 .4rem; color: var(--quiet); font-size: .8125rem }
.live .tools button:hover { color: var(--ink); text-decoration: underline }
.live .tools .said { font-size: .8125rem; color: var(--quiet) }
@container (max-width: 38em) {
  .live .halves { grid-template-columns: minmax(0, 1fr) }
  .live .says { font-size: 1rem }
}
@container (max-width: 17em) {
  .live .controls .slider, .live .slider { flex-basis: 100%; grid-template-columns: minmax(0, 1fr) auto }
  .live .slider input { grid-column: 1 / -1; grid-row: 2 }
}
.live.still { max-width: none; margin: 0; padding: .6rem .75rem }
.live.still :is(.controls, .buttons, .hint, .sentence, .tools, .hand, .slider, select, details) { display: none }
.live.still, .live.still * { transition: none !important }
@media (forced-colors: active) {
  .live { --ink: CanvasText; --quiet: CanvasText; --line: GrayText; --wash: Canvas; --raised: Canvas }
  .live :is(i, b, u, svg *) { forced-color-adjust: none }
  .live i { outline: 1px solid GrayText }
  .live :checked + span { outline: 2px solid Highlight; outline-offset: -2px }
}
@media (prefers-reduced-motion: reduce) { .live * { transition: none !important } }
@media print { .live :is(.controls, .buttons, .hint, .tools, .hand) { display: none } }
`;
