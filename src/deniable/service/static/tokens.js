// How this device gets the token that admits one submission: {message, signature}, both in hex.
//
// With "linkable codes" the invitation code is the token itself. With "blind tokens" the device
// makes a token, blinds it, has it signed once for the code, and removes the blinding: who signed
// cannot recognise it later. Until that is done the blinding is kept on the device, so that a lost
// answer can be asked for again.

import { blind, finalize, prepare, readPublicKey, toHex } from "./blind.js";

export async function obtainToken(brief, code, memory) {
  const encoder = new TextEncoder();
  if (brief.admission === "linkable codes") {
    return { message: toHex(encoder.encode(code)), signature: "" };
  }
  const key = await readPublicKey(brief.key);
  if (!memory.state.blinding) {
    const made = await blind(key, prepare(encoder.encode(brief.survey)));
    const fresh = {
      blinded: toHex(made.blinded), prepared: toHex(made.prepared), inverse: made.inverse.toString(16),
    };
    memory.keep(({ blinding }) => ({ blinding: blinding ?? fresh })); // another tab may have one
  }
  if (memory.state.token) return memory.state.token;
  const kept = memory.state.blinding;
  const answer = await fetch(`/s/${brief.survey}/tokens`, {
    method: "POST", credentials: "omit", referrerPolicy: "no-referrer",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ invitation: code, blinded: kept.blinded }),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  const prepared = fromHex(kept.prepared);
  const blinding = { prepared, inverse: BigInt(`0x${kept.inverse}`) };
  const signature = await finalize(key, blinding, fromHex(said.signed));
  return { message: kept.prepared, signature: toHex(signature) };
}

/** The fingerprint of the key that tokens are signed with; null where there is none. */
export async function keyFingerprint(brief) {
  return brief.key ? (await readPublicKey(brief.key)).fingerprint : null;
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
