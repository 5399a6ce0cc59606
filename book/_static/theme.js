/* Before the first paint: light or dark, as the reader chose it or the system has it. On paper always light. */
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  const kept = (use) => {
    try {
      return use(localStorage);
    } catch {
      return null; // a sandboxed frame has no storage: the choice lasts as long as the page
    }
  };
  let chosen = kept((storage) => storage.getItem("theme"));
  const show = () => {
    root.dataset.theme = paper.matches ? "light" : (chosen ?? (dark.matches ? "dark" : "light"));
  };
  dark.addEventListener("change", show);
  paper.addEventListener("change", show);
  addEventListener("click", ({ target }) => {
    if (!target.closest(".theme")) return;
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    kept((storage) => storage.setItem("theme", chosen));
    show();
  });
  show();
})();
