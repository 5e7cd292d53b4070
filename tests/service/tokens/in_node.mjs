// Runs steps.mjs in Node: a list of steps in JSON on the standard input, their results on the output.

import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { pathToFileURL } from "node:url";
import { run } from "./steps.mjs";

globalThis.crypto ??= webcrypto; // Node 18 does not offer it by itself
const module = await import(pathToFileURL(process.argv[2]));
const results = [];
for (const step of JSON.parse(readFileSync(0, "utf8"))) results.push(await run(module, step));
process.stdout.write(JSON.stringify(results));
