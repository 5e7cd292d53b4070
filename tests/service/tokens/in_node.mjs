// Runs steps.mjs in Node: a list of steps in JSON on the standard input, their results on the output.

import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { run } from "./steps.mjs";

globalThis.crypto ??= webcrypto; // Node 18 does not offer it by itself
// Older versions take a file that ends in .js for no module; browsers go by the script tag.
const source = readFileSync(process.argv[2], "base64");
const module = await import(`data:text/javascript;base64,${source}`);
const results = [];
for (const step of JSON.parse(readFileSync(0, "utf8"))) results.push(await run(module, step));
process.stdout.write(JSON.stringify(results));
