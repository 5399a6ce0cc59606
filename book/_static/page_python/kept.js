// What the reader wrote, kept in this browser: for each cell, and for each version of the text that it began with.

const root = new URL("../../", import.meta.url).pathname;

// A short name for a text (FNV-1a).
export const digest = (text) =>
  [...text].reduce((hash, char) => Math.imul(hash ^ char.codePointAt(), 0x01000193) >>> 0, 0x811c9dc5).toString(36);

const prefix = (cell) => `book ${root} ${cell} `;

export class Kept {
  constructor(cell, start) { this.cell = cell; this.key = prefix(cell) + digest(start); }

  read() { return attempt((store) => store.getItem(this.key)); }

  // Whether the browser keeps it.
  write(text) { return attempt((store) => { store.setItem(this.key, text); return true; }) ?? false; }

  // What was written under earlier versions of the cell, the keys with it.
  earlier() {
    return attempt((store) => Object.keys(store).filter((key) => key.startsWith(prefix(this.cell)) && key !== this.key)
      .map((key) => ({ key, text: store.getItem(key) }))) ?? [];
  }

  erase() { attempt((store) => store.removeItem(this.key)); }

  forget(key) { attempt((store) => store.removeItem(key)); }
}

function attempt(what) {
  try { return what(localStorage); } catch { return undefined; }
}
