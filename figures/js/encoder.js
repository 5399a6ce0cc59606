/** @file The small trained encoder, run in the page: reads its safetensors file and takes the same edits as the Python one. */

import { attention, matmul, softmax } from "./attention.js";

/**
 * @typedef {{cut: {layer: number, query: number, key: number, head: number | null}}
 *   | {off: {layer: number, head: number}}
 *   | {take: {what: "query" | "key" | "value", layer: number, to: number, source: number,
 *             head: number | null, words: string[] | null}}} Edit  layers and heads count from 0; head null is every head
 * @typedef {{q: number[][][][], k: number[][][][], v: number[][][][], weights: number[][][][],
 *            logits: number[][]}} Run  q, k, v, weights: [layer][head][position]; logits: [position][answer]
 */

/** @param {number} bits a float16 as an integer @returns {number} */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const READERS = {
  F16: { bytes: 2, read: (view, at) => half(view.getUint16(at, true)) },
  F32: { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  F64: { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
};

/**
 * Read a safetensors file. Vectors come as number[], matrices as number[][].
 * @param {DataView | Uint8Array | ArrayBuffer} bytes
 * @returns {{tensors: Record<string, any>, metadata: Record<string, string>}}
 */
export function parseSafetensors(bytes) {
  const view =
    bytes instanceof ArrayBuffer
      ? new DataView(bytes)
      : new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerBytes = Number(view.getBigUint64(0, true));
  const text = new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + 8, headerBytes));
  const { __metadata__: metadata = {}, ...entries } = JSON.parse(text);
  const tensors = {};
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [start],
    },
  ] of Object.entries(entries)) {
    const { bytes: size, read } = READERS[dtype];
    const at = (index) => read(view, 8 + headerBytes + start + size * index);
    const row = (offset, length) => Array.from({ length }, (_, j) => at(offset + j));
    tensors[name] =
      shape.length === 1
        ? row(0, shape[0])
        : Array.from({ length: shape[0] }, (_, i) => row(i * shape[1], shape[1]));
  }
  return { tensors, metadata };
}

/** Layer normalisation of each row, eps 1e-5. */
function layerNorm(x, weight, bias) {
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-5)) * weight[i] + bias[i]);
  });
}

/** Norm, linear, ReLU, linear, for each row; null without such weights. @param {(name: string) => any} weight */
function feedForward(x, weight) {
  if (!weight("W_in")) return null;
  const plus = (rows, bias) => rows.map((row) => row.map((value, i) => value + bias[i]));
  const normed = layerNorm(x, weight("norm.weight"), weight("norm.bias"));
  const hidden = plus(matmul(normed, weight("W_in")), weight("b_in"));
  const kept = hidden.map((row) => row.map((value) => Math.max(value, 0)));
  return plus(matmul(kept, weight("W_out")), weight("b_out"));
}

const add = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));
const splitHeads = (x, heads) => {
  const width = x[0].length / heads;
  return Array.from({ length: heads }, (_, h) => x.map((row) => row.slice(h * width, (h + 1) * width)));
};

/**
 * The encoder from its weights.
 * @param {DataView | Uint8Array | ArrayBuffer} bytes
 */
export function loadEncoder(bytes) {
  const { tensors, metadata } = parseSafetensors(bytes);
  const words = JSON.parse(metadata.words);
  const answers = JSON.parse(metadata.answers);
  const heads = Number(metadata.heads);
  const ids = new Map(words.map((word, id) => [word, id]));
  const layers = Object.keys(tensors).filter((name) => name.endsWith(".W_Q")).length;

  /**
   * Run one sentence. Cuts hide a key before the softmax; takes of one layer all read the vectors before any of them.
   * @param {string[]} sentence @param {Edit[]} [edits]
   * @returns {Run}
   */
  function run(sentence, edits = []) {
    const result = { q: [], k: [], v: [], weights: [], logits: [] };
    const others = new Map();
    const unedited = (other) => {
      const name = other.join(" ");
      if (!others.has(name)) others.set(name, run(other));
      return others.get(name);
    };
    let x = sentence.map((word, i) =>
      tensors.embedding[ids.get(word)].map((e, j) => e + tensors.position[i][j]),
    );
    for (let layer = 0; layer < layers; layer++) {
      const weight = (name) => tensors[`layer.${layer}.${name}`];
      const normed = layerNorm(x, weight("norm.weight"), weight("norm.bias"));
      const project = (name) => splitHeads(matmul(normed, weight(name)), heads);
      const before = { query: project("W_Q"), key: project("W_K"), value: project("W_V") };
      const used = Object.fromEntries(
        Object.entries(before).map(([what, vectors]) => [what, vectors.map((rows) => rows.slice())]),
      );
      const merged = sentence.map(() => []);
      const weights = [];
      for (let head = 0; head < heads; head++) {
        const here = (edit) => edit && edit.layer === layer && (edit.head === null || edit.head === head);
        for (const { take } of edits) {
          if (!here(take)) continue;
          const source = take.words === null ? before[take.what] : unedited(take.words)[take.what[0]][layer];
          used[take.what][head][take.to] = source[head][take.source];
        }
        const mask = sentence.map(() => sentence.map(() => true));
        for (const { cut } of edits) if (here(cut)) mask[cut.query][cut.key] = false;
        const attended = attention(used.query[head], used.key[head], used.value[head], { mask });
        const off = edits.some((edit) => here(edit.off));
        weights.push(attended.weights);
        attended.out.forEach((row, t) => merged[t].push(...(off ? row.map(() => 0) : row)));
      }
      x = add(x, matmul(merged, weight("W_O")));
      const fed = feedForward(x, (name) => weight(`feed_forward.${name}`));
      if (fed) x = add(x, fed);
      result.q.push(used.query);
      result.k.push(used.key);
      result.v.push(used.value);
      result.weights.push(weights);
    }
    const normed = layerNorm(x, tensors["norm.weight"], tensors["norm.bias"]);
    result.logits = matmul(normed, tensors.W_answer).map((row) =>
      row.map((logit, a) => logit + tensors.b_answer[a]),
    );
    return result;
  }

  /** @param {Run} result @param {number} position @returns {{word: string, p: number}[]} most probable first */
  const ranking = (result, position) =>
    softmax(result.logits[position])
      .map((p, a) => ({ word: answers[a], p }))
      .sort((a, b) => b.p - a.p);

  const pointingHead = metadata.pointing_head ? JSON.parse(metadata.pointing_head) : [layers - 1, 0];
  return { words, answers, heads, layers, pointingHead, run, ranking };
}
