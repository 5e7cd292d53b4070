// How this device gets the token that admits one submission: {message, signature}, both in hex.
// The seam for blind signatures: a survey whose `admission` is "blind tokens" blinds, asks the
// server to sign, and unblinds here; with "linkable codes" the invitation code is the token itself.

export async function obtainToken(brief, code) {
  if (brief.admission === "linkable codes") {
    const bytes = new TextEncoder().encode(code);
    const message = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return { message, signature: "" };
  }
  throw new Error(`This page does not know the admission "${brief.admission}".`);
}
