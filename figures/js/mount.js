/* A classic script: brings the figures of a static page to life, each for itself, without a kernel. What a figure needs is
   in globalThis.liveFigures = {modules: {name: function}, weights: {name: base64}}, or is laid there by a classic script
   beside this one, modules/<name>.js or weights/<name>.js, which is then asked for: unlike an ES module by its address,
   and fetch, that works in a page opened from the file system; and unlike source text, under a policy that runs files only. */
(() => {
  const LOST = (file) => `This figure stays as it is drawn here: ${file} could not be loaded. Load the page again to try once more.`;
  const BROKEN = (reason) => `This figure stays as it is drawn here: it cannot run in this browser (${reason}).`;
  const PATIENCE = 10_000; // milliseconds until the next figure no longer waits for one
  const laid = (globalThis.liveFigures ??= { modules: {}, weights: {} });
  const beside = document.currentScript?.src;
  const asked = {};
  const load = (file) =>
    (asked[file] ??= new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = new URL(file, beside);
      script.onload = done;
      script.onerror = () => fail(new Error(LOST(file.split("/").at(-1))));
      document.head.append(script);
    }));
  const get = async (kind, name) => {
    if (!(name in laid[kind])) await load(`${kind}/${name}.js`);
    return laid[kind][name];
  };
  const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  /* Whether the host's policy lets a figure bring its styles. */
  const mayStyle = () => {
    const style = Object.assign(document.createElement("style"), { textContent: "a{}" });
    document.head.append(style);
    const applied = style.sheet?.cssRules.length > 0;
    style.remove();
    return applied;
  };
  const mount = async (el) => {
    if (!mayStyle()) throw new Error(BROKEN("the host refuses its styles"));
    const state = JSON.parse(el.querySelector('[type="application/json"]').textContent);
    const [module, weights] = await Promise.all([
      get("modules", el.dataset.figure),
      state.weights && get("weights", state.weights),
    ]);
    if (weights) state.weights = bytes(weights);
    const events = new EventTarget();
    const model = {
      get: (name) => state[name],
      set: (name, value) => ((state[name] = value), events.dispatchEvent(new Event(`change:${name}`))),
      on: (name, listener) => events.addEventListener(name, listener),
      off: (name, listener) => events.removeEventListener(name, listener),
      save_changes() {},
    };
    const atRest = [...el.childNodes];
    try {
      await module().render({ model, el });
    } catch (error) {
      el.replaceChildren(...atRest);
      throw new Error(BROKEN(error.message), { cause: error });
    }
  };
  const say = (el, { message }) => {
    const said = document.createElement("p");
    said.className = "failed";
    said.setAttribute("role", "status");
    said.textContent = message;
    el.append(said);
  };
  const all = async () => {
    for (const el of document.querySelectorAll(".explore[data-figure]")) {
      const done = mount(el).catch((error) => say(el, error));
      await Promise.race([done, new Promise((late) => setTimeout(late, PATIENCE))]); // the first has the line to itself
    }
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", all);
  else all();
})();
