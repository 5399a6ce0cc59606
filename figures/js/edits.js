/** @file What a reader changes inside the encoder: edits as the figure keeps them, and as the encoder takes them. */

/**
 * @typedef {import("./encoder.js").Edit} Edit
 * @typedef {Edit | {exchange: {what: string, layer: number, a: number, b: number, head: number | null}}} FigureEdit
 *   a take whose `words` is "twin" reads the twin of whatever the sentence is now
 */

/** @param {FigureEdit} edit */
export const kindOf = (edit) => Object.keys(edit)[0];
export const sameEdit = (one, two) => JSON.stringify(one) === JSON.stringify(two);

/** Add the edit, or remove it if it is there. @param {FigureEdit[]} edits @param {FigureEdit} edit */
export const toggleEdit = (edits, edit) =>
  edits.some((other) => sameEdit(other, edit))
    ? edits.filter((other) => !sameEdit(other, edit))
    : [...edits, edit];

/** Whether all of `wanted` are among `edits`. @param {FigureEdit[]} edits @param {FigureEdit[]} wanted */
export const hasAll = (edits, wanted) =>
  wanted.every((edit) => edits.some((other) => sameEdit(other, edit)));

/** Add those of `wanted` that are missing, or remove them all if none is. @param {FigureEdit[]} edits @param {FigureEdit[]} wanted */
export function toggleAll(edits, wanted) {
  const rest = edits.filter((edit) => !wanted.some((other) => sameEdit(other, edit)));
  return hasAll(edits, wanted) ? rest : [...rest, ...wanted];
}

/** @param {FigureEdit[]} edits @param {string[]} twin @returns {Edit[]} as the encoder takes them */
export function resolve(edits, twin) {
  return edits.flatMap((edit) => {
    if (edit.exchange) {
      const { what, layer, a, b, head } = edit.exchange;
      const take = (to, source) => ({ take: { what, layer, to, source, head, words: null } });
      return [take(a, b), take(b, a)];
    }
    if (edit.take?.words === "twin") return [{ take: { ...edit.take, words: twin } }];
    return [edit];
  });
}

/** @param {FigureEdit[]} edits @param {number} layer @param {number} head @param {number} query @param {number} key */
export const isCut = (edits, layer, head, query, key) =>
  edits.some(
    ({ cut }) =>
      cut && cut.layer === layer && cut.query === query && cut.key === key && (cut.head ?? head) === head,
  );

/**
 * Cut the line from query to key in one head (null: in every head), or restore it if it is cut there.
 * @param {FigureEdit[]} edits @param {number} layer @param {number | null} head @param {number} query @param {number} key
 */
export function toggleCut(edits, layer, head, query, key) {
  const touches = ({ cut }) =>
    cut &&
    cut.layer === layer &&
    cut.query === query &&
    cut.key === key &&
    (head === null || cut.head === null || cut.head === head);
  const restored = edits.filter((edit) => !touches(edit));
  const wasCut =
    head === null
      ? edits.some((edit) => touches(edit) && edit.cut.head === null)
      : restored.length < edits.length;
  return wasCut ? restored : [...restored, { cut: { layer, query, key, head } }];
}
