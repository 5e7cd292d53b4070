// One-time tokens that their issuer cannot recognise, on the respondent's device: RSA blind
// signatures (RFC 9474). The steps of who holds a token, for browsers and Node.
//
//   const key = await readPublicKey(pem);              // compare key.fingerprint with a public copy
//   const blinding = await blind(key, prepare(message));
//   // send blinding.blinded to the issuer, who returns a blind signature
//   const signature = await finalize(key, blinding, blindSignature);
//   tokenText(blinding.prepared, signature);           // goes with the report, later
//
// If `finalize` fails, throw everything away and start again from `prepare`.
//
// BigInt is not computed in constant time. Here that is harmless as far as is known: each secret
// is random, is used once, and never leaves the device.

export class TokenError extends Error {
  name = "TokenError";
}

// Lengths in bytes. Surveys use the first, which stays blind even to a key made to leak.
export const PSS_RANDOMIZED = variant("RSABSSA-SHA384-PSS-Randomized", 48, 32);
export const PSSZERO_RANDOMIZED = variant("RSABSSA-SHA384-PSSZERO-Randomized", 0, 32);
export const PSS_DETERMINISTIC = variant("RSABSSA-SHA384-PSS-Deterministic", 48, 0);
export const PSSZERO_DETERMINISTIC = variant("RSABSSA-SHA384-PSSZERO-Deterministic", 0, 0);

const EXPONENT = 65537n;
const HASH_LENGTH = 48;
const LEAST_BITS = 2048;
const MOST_BITS = 8192;

/** The issuer's key, from PEM. */
export async function readPublicKey(pem) {
  const der = readPem(pem);
  const scheme = { name: "RSA-PSS", hash: "SHA-384" };
  let verifier, words;
  try {
    verifier = await subtle().importKey("spki", der, scheme, true, ["verify"]);
    words = await subtle().exportKey("jwk", verifier);
  } catch (cause) {
    if (cause instanceof TokenError) throw cause;
    throw new TokenError("this is no public key of RSA in PEM");
  }
  const modulus = toNumber(fromBase64Url(words.n));
  const bits = modulus.toString(2).length;
  if (toNumber(fromBase64Url(words.e)) !== EXPONENT || bits < LEAST_BITS || bits > MOST_BITS) {
    throw new TokenError(
      `keys of tokens have ${LEAST_BITS} to ${MOST_BITS} bits and the exponent ${EXPONENT}`,
    );
  }
  const fingerprint = toHex(new Uint8Array(await subtle().digest("SHA-256", der)));
  return Object.freeze({ modulus, bits, length: Math.ceil(bits / 8), verifier, fingerprint });
}

/** The message behind a fresh random prefix, if the variant has one. */
export function prepare(message, { prefixLength } = PSS_RANDOMIZED) {
  return join(randomBytes(prefixLength), requireBytes("message", message));
}

/** Hide a prepared message from its signer: `blinded` is for it, the rest stays on the device. */
export async function blind(key, prepared, { saltLength } = PSS_RANDOMIZED) {
  requireBytes("prepared", prepared);
  const salt = randomBytes(saltLength);
  const number = toNumber(await encode(prepared, salt, key.bits - 1));
  if (inverse(number, key.modulus) === null) {
    throw new TokenError("this message has no place under this key; prepare another one");
  }
  const [factor, undo] = uniformUnit(key);
  const blinded = (number * power(factor, EXPONENT, key.modulus)) % key.modulus;
  return { blinded: toBytes(blinded, key.length), prepared, inverse: undo };
}

/** The signature of the prepared message: remove the blinding, and verify. */
export async function finalize(key, blinding, blindSignature, { saltLength } = PSS_RANDOMIZED) {
  requireBytes("blind signature", blindSignature);
  if (blindSignature.length !== key.length) {
    throw new TokenError(
      `the blind signature has ${blindSignature.length} bytes, and this key works on ${key.length}`,
    );
  }
  const number = (toNumber(blindSignature) * blinding.inverse) % key.modulus;
  const signature = toBytes(number, key.length);
  const scheme = { name: "RSA-PSS", saltLength };
  if (!(await subtle().verify(scheme, key.verifier, signature, blinding.prepared))) {
    throw new TokenError("the signature is not one of this message under this key");
  }
  return signature;
}

/** A token as it is handed in: both parts in base64url, with a dot between them. */
export function tokenText(prepared, signature) {
  return [prepared, signature].map(toBase64Url).join(".");
}

// EMSA-PSS with SHA-384 and MGF1 (RFC 8017, 9.1.1 and B.2.1).
async function encode(message, salt, bits) {
  const length = Math.ceil(bits / 8);
  const seal = await sha384(join(new Uint8Array(8), await sha384(message), salt));
  const block = new Uint8Array(length - HASH_LENGTH - 1);
  block.set(salt, block.length - salt.length);
  block[block.length - salt.length - 1] = 1;
  const mask = await maskGeneration(seal, block.length);
  const masked = block.map((byte, i) => byte ^ mask[i]);
  masked[0] &= 0xff >> (8 * length - bits);
  return join(masked, seal, Uint8Array.of(0xbc));
}

async function maskGeneration(seed, length) {
  const blocks = [];
  for (let counter = 0; counter * HASH_LENGTH < length; counter++) {
    blocks.push(await sha384(join(seed, toBytes(BigInt(counter), 4))));
  }
  return join(...blocks).slice(0, length);
}

async function sha384(bytes) {
  return new Uint8Array(await subtle().digest("SHA-384", bytes));
}

// Uniform on the numbers below n that have an inverse, by rejection; with that inverse.
function uniformUnit({ modulus, bits, length }) {
  for (;;) {
    const drawn = toNumber(randomBytes(length)) >> BigInt(8 * length - bits);
    const undo = drawn < modulus ? inverse(drawn, modulus) : null;
    if (undo !== null) return [drawn, undo];
  }
}

function power(base, exponent, modulus) {
  let result = 1n;
  for (let square = base; exponent > 0n; exponent >>= 1n, square = (square * square) % modulus) {
    if (exponent & 1n) result = (result * square) % modulus;
  }
  return result;
}

// Euclid's algorithm; null if there is no inverse. Throughout, rest = factor * number (mod modulus).
function inverse(number, modulus) {
  let [rest, nextRest, factor, nextFactor] = [modulus, number % modulus, 0n, 1n];
  while (nextRest > 0n) {
    const quotient = rest / nextRest;
    [rest, nextRest] = [nextRest, rest - quotient * nextRest];
    [factor, nextFactor] = [nextFactor, factor - quotient * nextFactor];
  }
  if (rest !== 1n) return null;
  return factor < 0n ? factor + modulus : factor;
}

function variant(name, saltLength, prefixLength) {
  return Object.freeze({ name, saltLength, prefixLength });
}

// Browsers offer cryptography to pages that came over an encrypted connection only.
function subtle() {
  const found = globalThis.crypto?.subtle;
  if (!found) throw new TokenError("no cryptography here: open this page over https");
  return found;
}

function randomBytes(count) {
  return crypto.getRandomValues(new Uint8Array(count));
}

function requireBytes(what, value) {
  if (!(value instanceof Uint8Array)) throw new TokenError(`the ${what} must be a Uint8Array`);
  return value;
}

function join(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Bytes in hexadecimal digits. */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function toNumber(bytes) {
  return BigInt("0x0" + toHex(bytes));
}

function toBytes(number, length) {
  const hex = number.toString(16).padStart(2 * length, "0");
  return Uint8Array.from({ length }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}

function toBase64Url(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text) {
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
}

function readPem(pem) {
  const form = /^\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/;
  const found = typeof pem === "string" ? form.exec(pem) : null;
  try {
    return fromBase64(found[1].replace(/\s/g, ""));
  } catch {
    throw new TokenError("this is no public key of RSA in PEM");
  }
}
