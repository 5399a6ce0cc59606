/* What every page does: its drawers close after a choice, and its contents show where the reader is. */
for (const drawer of document.querySelectorAll(".drawer"))
  drawer.addEventListener("click", ({ target }) => {
    if (target.closest("a") && drawer.matches(":popover-open")) drawer.hidePopover();
  });

{
  const drawer = document.querySelector(".contents");
  const links = [...(drawer?.querySelectorAll("a[href^='#']") ?? [])];
  const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let waiting = 0;
  const mark = () => {
    waiting = 0;
    const above = places.filter((place) => place && place.getBoundingClientRect().top < innerHeight / 3).length;
    const atEnd = scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const here = links[(atEnd ? places.length : above) - 1];
    for (const link of links) link.toggleAttribute("aria-current", link === here);
    here?.setAttribute("aria-current", "location");
    if (here) drawer.scrollTop = here.offsetTop - drawer.clientHeight / 2;
  };
  if (links.length) {
    addEventListener("scroll", () => (waiting ||= requestAnimationFrame(mark)), { passive: true });
    addEventListener("resize", mark);
    mark();
  }
}

/* A search leads here with the words that it found: they are marked, and the first after the place it leads to is shown. */
{
  const words = new URLSearchParams(location.search).get("found")?.split(" ").filter(Boolean) ?? [];
  if (words.length && globalThis.Highlight) {
    const pattern = new RegExp(`(?<!\\w)(?:${words.map((word) => word.replace(/[^\w]/g, "\\$&")).join("|")})(?!\\w)`, "giu");
    const text = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT, (node) =>
      node.parentElement.closest("script, style") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
    );
    const ranges = [];
    while (text.nextNode())
      for (const { index, 0: word } of text.currentNode.data.matchAll(pattern)) {
        const range = new Range();
        range.setStart(text.currentNode, index);
        range.setEnd(text.currentNode, index + word.length);
        ranges.push(range);
      }
    CSS.highlights.set("found", new Highlight(...ranges));
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const follows = ({ startContainer }) => place.compareDocumentPosition(startContainer) & Node.DOCUMENT_POSITION_FOLLOWING;
    const first = (place && ranges.find(follows)) ?? ranges[0];
    const show = () => {
      const fold = first.startContainer.parentElement.closest("details");
      if (fold) fold.open = true;
      first.startContainer.parentElement.scrollIntoView({ block: "center" });
    };
    if (first) addEventListener("load", show);
  }
}

/* Where the host's policy lets no script run that stands within a page, the questions are said to be missing. */
addEventListener("load", () =>
  setTimeout(() => {
    for (const cell of document.querySelectorAll(".tag_quiz:not(:has(.Quiz))")) {
      const said = document.createElement("p");
      said.className = "failed";
      said.textContent = "The questions do not run here: this host refuses scripts within a page. They are in the notebook.";
      cell.append(said);
    }
  }, 1000),
);
