/** @file Normal numbers from a seed, the same as those of `normals` in explore_scaling.py. */

/** The finaliser of MurmurHash3 (Appleby 2011): 32 bits, well mixed. @param {number} bits @returns {number} */
function mix(bits) {
  let h = bits ^ (bits >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * `count` standard normal numbers, by Box and Muller's method from a counter that is hashed.
 * @param {number} seed @param {number} count @returns {Float64Array}
 */
export function normals(seed, count) {
  const start = mix(seed);
  const uniform = (i) => (mix(Math.imul(i, 0x9e3779b9) + start) + 0.5) / 2 ** 32;
  const out = new Float64Array(count + (count % 2));
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(uniform(i)));
    const angle = 2 * Math.PI * uniform(i + 1);
    out[i] = radius * Math.cos(angle);
    out[i + 1] = radius * Math.sin(angle);
  }
  return out.subarray(0, count);
}
