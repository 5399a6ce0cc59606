/* A classic script: brings every figure on a static page to life, without a kernel. What it needs was laid beside the
   page by other classic scripts: globalThis.liveFigures = {modules: {name: source}, weights: {name: base64}}. */
(() => {
  const mount = async (el) => {
    const { modules, weights } = globalThis.liveFigures;
    const state = JSON.parse(el.querySelector('[type="application/json"]').textContent);
    if (state.weights)
      state.weights = Uint8Array.from(atob(weights[state.weights]), (letter) => letter.charCodeAt(0));
    const events = new EventTarget();
    const model = {
      get: (name) => state[name],
      set: (name, value) => ((state[name] = value), events.dispatchEvent(new Event(`change:${name}`))),
      on: (name, listener) => events.addEventListener(name, listener),
      off: (name, listener) => events.removeEventListener(name, listener),
      save_changes() {},
    };
    const url = URL.createObjectURL(new Blob([modules[el.dataset.figure]], { type: "text/javascript" }));
    const { default: figure } = await import(url);
    URL.revokeObjectURL(url);
    figure.render({ model, el });
  };
  const all = () => document.querySelectorAll(".explore[data-figure]").forEach(mount);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", all);
  else all();
})();
