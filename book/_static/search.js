/* The search page: by section, chapters first. Pagefind finds, where pages may fetch; else, in a page from the file system or
   in a sandboxed frame, Sphinx's own search, which loads its index as a script. */
{
  const box = document.querySelector("#search-results");
  const summary = document.querySelector("#search-summary");
  const beside = new URL(".", document.currentScript.src);
  const root = new URL("..", beside);
  const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
  const GROUPS = [
    ["Chapters", /^chapters\//],
    ["To look things up", /^(?!chapters\/|api)/],
    ["Reference", /^api/],
  ];
  const SECTIONS = 3; // of one page, before one asks for more

  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
  };

  /* What is asked for, and the same with each word that the glossary has another word for. */
  const wordings = () => {
    const all = new Set([query.toLowerCase()]);
    for (const [also, term] of Object.entries(globalThis.bookSynonyms))
      for (const wording of all) all.add(wording.replace(new RegExp(`(?<![\\w-])${also}(?![\\w-])`), term));
    return [...all];
  };

  const marked = (excerpt) => {
    const words = [...excerpt.matchAll(/<mark>(.*?)<\/mark>/g)].map((found) => found[1].toLowerCase().match(/\w+(?:-\w+)*/)?.[0]);
    return new Set(words.filter(Boolean));
  };
  /* A section's address, with the words to mark there. */
  const place = (url, excerpt) => {
    const target = new URL(url, location);
    target.searchParams.set("found", [...marked(excerpt)].join(" "));
    return target;
  };
  /* How many words of a wording stand in an excerpt, be it within another word or with another ending. */
  const score = (wording, { excerpt }) => {
    const within = [...marked(excerpt)].join(" ");
    return (wording.match(/\w+/g) ?? []).filter((word) => within.includes(word.slice(0, Math.max(4, word.length - 3)))).length;
  };
  const section = ({ url, title, excerpt }) =>
    make("li", {}, make("a", { href: place(url, excerpt), textContent: title }), make("p", { innerHTML: excerpt }));

  const page = ({ url, meta, excerpt, parts }) => {
    const items = parts.map(section);
    const title = items.length ? make("h3", {}, meta.title) : "";
    if (!items.length) items.push(section({ url, title: meta.title, excerpt }));
    const list = make("ul", {}, ...items.slice(0, SECTIONS));
    const rest = items.slice(SECTIONS);
    if (rest.length) {
      const more = make("button", { textContent: `${rest.length} more` });
      more.onclick = () => (more.replaceWith(...rest), rest[0].querySelector("a").focus());
      list.append(more);
    }
    return make("section", {}, title, list);
  };

  const byPagefind = async () => {
    const pagefind = await import(new URL("pagefind/pagefind.js", beside));
    await pagefind.options({ excerptLength: 24, baseUrl: root.pathname });
    const found = new Map();
    for (const wording of wordings())
      for (const result of (await pagefind.search(wording)).results) {
        const data = await result.data();
        const most = Math.max(...[data, ...data.sub_results].map((part) => score(wording, part)));
        if (!most) continue; // nothing but the first letters of what was asked for
        const parts = data.sub_results.filter((part) => part.anchor && score(wording, part) === most);
        const page = found.get(data.url);
        if (!page) found.set(data.url, { ...data, parts });
        else page.parts.push(...parts.filter(({ url }) => page.parts.every((known) => known.url !== url)));
      }
    const pages = [...found.values()];
    const within = ({ url }) => new URL(url, location).href.slice(root.href.length);
    for (const [name, pattern] of GROUPS) {
      const here = pages.filter((data) => pattern.test(within(data)));
      if (here.length) box.append(make("h2", {}, name), ...here.map(page));
    }
    const count = `${pages.length} ${pages.length === 1 ? "page" : "pages"}`;
    summary.textContent = pages.length ? `“${query}” stands in ${count}.` : `Nothing in the book for “${query}”.`;
  };

  const load = (name) =>
    new Promise((done, fail) => document.head.append(make("script", { src: new URL(name, beside), onload: done, onerror: fail })));
  const bySphinx = async () => {
    const parts = ["documentation_options.js", "doctools.js", "sphinx_highlight.js", "language_data.js", "searchtools.js", "../searchindex.js"];
    for (const name of parts) await load(name);
  };

  for (const field of document.querySelectorAll("input[name=q]")) field.value = query;
  if (query) (origin === "null" ? bySphinx() : byPagefind().catch(bySphinx));
}
