// Steps with blind.js that tests ask for; bytes go in and out in hexadecimal.

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (found) => Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");

const DO = {
  async prepare(module, { message, variant }) {
    return { prepared: hex(module.prepare(bytes(message), module[variant])) };
  },
  async key(module, { pem }) {
    const key = await module.readPublicKey(pem);
    return { fingerprint: key.fingerprint, length: key.length };
  },
  async blind(module, { pem, prepared, variant }) {
    const key = await module.readPublicKey(pem);
    const found = await module.blind(key, bytes(prepared), module[variant]);
    return { blinded: hex(found.blinded), inverse: found.inverse.toString(16) };
  },
  async blindOften(module, { pem, prepared, count }) {
    const key = await module.readPublicKey(pem);
    const all = [];
    for (let i = 0; i < count; i++) {
      all.push(hex((await module.blind(key, bytes(prepared))).blinded));
    }
    return { all };
  },
  async finalize(module, { pem, prepared, inverse, blindSignature, variant }) {
    const key = await module.readPublicKey(pem);
    const blinding = { prepared: bytes(prepared), inverse: BigInt("0x" + inverse) };
    const signature = await module.finalize(
      key, blinding, bytes(blindSignature), module[variant],
    );
    return { signature: hex(signature), token: module.tokenText(blinding.prepared, signature) };
  },
  async refusesText(module, { pem }) {
    const key = await module.readPublicKey(pem);
    const tries = [
      () => module.prepare("text"),
      () => module.blind(key, [1, 2, 3]),
      () => module.finalize(key, { prepared: bytes("00"), inverse: 1n }, 7),
    ];
    const names = [];
    for (const attempt of tries) {
      try {
        await attempt();
        names.push("nothing");
      } catch (error) {
        names.push(error.name);
      }
    }
    return { names };
  },
};

// `random`, where given, is what the device's source of randomness says during the step.
export async function run(module, step) {
  const script = step.random === undefined ? null : [...bytes(step.random)];
  if (script) crypto.getRandomValues = (into) => (into.set(script.splice(0, into.length)), into);
  try {
    return await DO[step.do](module, step);
  } catch (error) {
    return { error: error.name, message: error.message };
  } finally {
    if (script) delete crypto.getRandomValues;
  }
}
