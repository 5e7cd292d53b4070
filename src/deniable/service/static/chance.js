// Chance and what it promises: the law of one question, its ε, and the coins as they are thrown.

export const WORD = 1n << 64n;

/** Random 32-bit words from the browser's cryptographic generator. */
export function deviceWords() {
  const one = new Uint32Array(1);
  return () => crypto.getRandomValues(one)[0];
}

function word64(words) {
  const high = words();
  return (BigInt(high) << 32n) | BigInt(words());
}

/** A whole number below `count`, each alike: words beyond the last full round are drawn again. */
function below(count, words) {
  const limit = 2 ** 32 - (2 ** 32 % count);
  let word = words();
  while (word >= limit) word = words();
  return word % count;
}

/** The bit with probability 2p - 1, else a fair coin; so the bit is sent with probability p. */
function coin(bit, threshold, words) {
  if (word64(words) < 2n * threshold - WORD) return { report: bit, told: true };
  return { report: words() & 1, told: false };
}

/** The answer with probability p, else one of the others, each alike. */
function die(answer, k, threshold, words) {
  if (word64(words) < threshold) return { report: answer, told: true };
  const other = below(k - 1, words);
  return { report: other + (other >= answer ? 1 : 0), told: false };
}

/** A number's place on a grid of 2^30 parts between the bounds. */
function place(value, low, high) {
  const inside = Math.min(Math.max(value, low), high);
  return Math.floor(((inside - low) / (high - low)) * 2 ** 30 + 0.5);
}

/** Randomise one answer: an option's place, or a number for a question on a number. */
export function respond(item, answer, words = deviceWords()) {
  const threshold = BigInt(item.law.thresholds.truth);
  if (item.kind === "number") {
    const bit = words() >>> 2 < place(answer, Number(item.low), Number(item.high)) ? 1 : 0;
    return coin(bit, threshold, words);
  }
  const k = item.options.length;
  return k === 2 ? coin(answer, threshold, words) : die(answer, k, threshold, words);
}

/** How often a report is made likelier by one answer than by another, at most: [above, below]. */
function ratioOf(item) {
  const threshold = BigInt(item.law.thresholds.truth);
  return [threshold * BigInt(item.options.length - 1), WORD - threshold];
}

/** ε of what `respond` throws for an item at most: how far two answers can be apart, as a log. */
export function epsilonOf(item) {
  const [above, below] = ratioOf(item);
  if (below <= 0n || above <= 0n) return Infinity; // always or never the answer
  const digits = 10n ** 15n;
  // An answer that is never sent tells as much as one that always is.
  return Math.abs(Math.log(Number((digits * above) / below) / Number(digits)));
}

/** ε for the eye: up at the fourth decimal, apart from the last digits of a logarithm. */
export function shownEpsilon(epsilon) {
  return decimal(Math.ceil(epsilon * 1e4 - 1e-8), 4);
}

/** The ratio for the eye, up at the second decimal. */
export function shownRatio(item) {
  const [above, below] = ratioOf(item);
  return decimal(Number((100n * above + below - 1n) / below), 2);
}

/** What a suspicion of one in ten can become after a report, in percent, up at the first decimal. */
export function shownSuspicion(item) {
  const [above, below] = ratioOf(item);
  const seen = above + 9n * below;
  return `${decimal(Number((1000n * above + seen - 1n) / seen), 1)}%`;
}

/** A whole number of parts as a decimal fraction, without zeros at its end. */
function decimal(parts, places) {
  return String(Number((parts / 10 ** places).toFixed(places)));
}

/** The share of the wheel on which the answer counts. */
export function toldShare(item) {
  const threshold = BigInt(item.law.thresholds.truth);
  const told = item.options.length === 2 ? 2n * threshold - WORD : threshold;
  return Number((told * 1000000n) / WORD) / 1000000;
}
