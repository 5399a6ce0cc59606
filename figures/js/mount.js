/* A classic script: brings every figure on a static page to life, one after another, without a kernel. What a figure
   needs is in globalThis.liveFigures = {modules: {name: source}, weights: {name: base64}}, or is laid there by a classic
   script beside this one, modules/<name>.js or weights/<name>.js, which is then asked for: unlike an ES module by its
   address, and fetch, that works in a page opened from the file system. */
(() => {
  const laid = (globalThis.liveFigures ??= { modules: {}, weights: {} });
  const beside = document.currentScript?.src;
  const asked = {};
  const load = (kind, name) =>
    (asked[`${kind}/${name}.js`] ??= new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = new URL(`${kind}/${name}.js`, beside);
      script.onload = () => done(laid[kind][name]);
      script.onerror = () => fail(new Error(`${script.src} cannot be loaded`));
      document.head.append(script);
    }));
  const get = (kind, name) => laid[kind][name] ?? load(kind, name);
  const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const read = async (source) => {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { default: figure } = await import(url);
    URL.revokeObjectURL(url);
    return figure;
  };
  const mount = async (el) => {
    const state = JSON.parse(el.querySelector('[type="application/json"]').textContent);
    const source = get("modules", el.dataset.figure);
    if (state.weights) state.weights = bytes(await get("weights", state.weights));
    const events = new EventTarget();
    const model = {
      get: (name) => state[name],
      set: (name, value) => ((state[name] = value), events.dispatchEvent(new Event(`change:${name}`))),
      on: (name, listener) => events.addEventListener(name, listener),
      off: (name, listener) => events.removeEventListener(name, listener),
      save_changes() {},
    };
    const figure = await read(await source);
    figure.render({ model, el });
  };
  const all = async () => {
    if (location.search === "?print") return; // on paper a figure rests
    for (const el of document.querySelectorAll(".explore[data-figure]")) await mount(el);
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", all);
  else all();
})();
