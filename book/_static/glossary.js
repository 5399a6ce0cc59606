/* A word of the glossary shows its entry on hover, focus and tap; without scripts it is a link to it. */
{
  const box = Object.assign(document.createElement("div"), { className: "meaning", popover: "manual" });
  document.body.append(box);
  let closing = 0;
  const hide = () => box.matches(":popover-open") && box.hidePopover();
  const stay = () => clearTimeout(closing);
  const leave = () => {
    stay();
    closing = setTimeout(hide, 250); // time to reach the box
  };
  const show = (term) => {
    stay();
    const entry = document.getElementById(term.getAttribute("aria-describedby")).cloneNode(true);
    const more = Object.assign(document.createElement("a"), { href: term.href, textContent: "In the glossary" });
    box.replaceChildren(...entry.childNodes, " ", more);
    box.showPopover();
    const word = term.getClientRects()[0];
    const below = word.bottom + box.offsetHeight + 8 < innerHeight;
    box.style.top = `${below ? word.bottom + 4 : word.top - box.offsetHeight - 4}px`;
    box.style.left = `${Math.max(8, Math.min(word.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  };
  for (const term of document.querySelectorAll("a.term")) {
    term.addEventListener("pointerenter", ({ pointerType }) => pointerType === "mouse" && show(term));
    term.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && leave());
    term.addEventListener("focus", () => show(term));
    term.addEventListener("blur", leave);
    term.addEventListener("click", (event) => {
      if (event.pointerType !== "touch") return;
      event.preventDefault(); // a tap shows the entry; the link to the glossary is in it
      show(term);
    });
  }
  box.addEventListener("pointerenter", stay);
  box.addEventListener("pointerleave", leave);
  addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  addEventListener("scroll", hide, { passive: true });
}
