// What this page does, in the order in which it happens:
//   1. You choose an answer. It lives in one variable of one function (`throwFor`).
//   2. That function throws the coins at once, keeps the randomised report, and forgets the answer.
//   3. Only reports are stored on this device (so that a reload cannot throw again) and sent.
// There is no other script, no cookie, and no other place to which anything is sent.

import { keyFingerprint, obtainToken } from "./tokens.js";

const WORD = 1n << 64n;

// ---------------------------------------------------------------- chance

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

/** ε of what `respond` throws for an item at most: how far two answers can be apart, as a log. */
export function epsilonOf(item) {
  const threshold = BigInt(item.law.thresholds.truth);
  if (threshold >= WORD) return Infinity;
  const others = BigInt(item.options.length - 1);
  const digits = 10n ** 15n;
  const ratio = Number((digits * threshold * others) / (WORD - threshold)) / Number(digits);
  return Math.abs(Math.log(ratio)); // an answer that is never sent tells as much as one that always is
}

/** The share of the wheel on which the answer counts. */
function toldShare(item) {
  const threshold = BigInt(item.law.thresholds.truth);
  const told = item.options.length === 2 ? 2n * threshold - WORD : threshold;
  return Number((told * 1000000n) / WORD) / 1000000;
}

// ---------------------------------------------------------------- memory: reports, never answers

class Memory {
  constructor({ survey, epsilon }, code, kept) {
    this.key = `deniable:${survey}:${code}`;
    this.kept = kept;
    this.state = {
      version: 1, epsilon, nonce: randomHex(16), token: null, blinding: null,
      reports: kept ? refusedReports(survey) : {}, tried: false, sent: false,
    };
    this.keep(() => ({}));
  }

  /** Change what is kept, beginning from what is kept now: another tab may have been faster. */
  keep(change) {
    if (this.kept) {
      const known = localStorage.getItem(this.key);
      if (known !== null) this.state = JSON.parse(known);
    }
    this.state = { ...this.state, ...change(this.state) };
    if (this.kept) localStorage.setItem(this.key, JSON.stringify(this.state));
    return this.state;
  }

  /** The report on a question, if it was thrown for before, in whatever tab. */
  report(item) {
    const { reports } = this.keep(() => ({}));
    return Object.keys(reports).includes(item.id) ? reports[item.id] : null;
  }
}

/** All that is kept here, as [key, state]. */
function memories() {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith("deniable:"))
    .map((key) => [key, JSON.parse(localStorage.getItem(key))]);
}

/**
 * Reports of this survey that left the device and were not stored: refused, or never heard of.
 * Whoever comes back with another code sends the same again, for they may have been seen.
 */
function refusedReports(survey) {
  const found = memories().find(
    ([key, state]) => key.startsWith(`deniable:${survey}:`) && state.tried && !state.sent);
  return found ? found[1].reports : {};
}

/** The memory of this code; null where the browser keeps nothing. */
function openMemory(brief, code) {
  try {
    return new Memory(brief, code, !preview);
  } catch {
    return null;
  }
}

/** What this device sent before: how many submissions, and their ε together with this survey's. */
function sentBefore({ survey, epsilon }, code) {
  try {
    const sent = memories().filter(
      ([key, state]) => key !== `deniable:${survey}:${code}` && state.sent);
    const total = sent.reduce((sum, [, state]) => sum + state.epsilon, epsilon);
    return sent.length === 0 ? null : { count: sent.length, epsilon: Math.ceil(total * 1e4) / 1e4 };
  } catch {
    return null; // what cannot be read is not counted; nothing can be answered here either
  }
}

function randomHex(count) {
  return toHex(crypto.getRandomValues(new Uint8Array(count)));
}

function toHex(bytes) {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// ---------------------------------------------------------------- the page

const page = document.getElementById("page");
const preview = document.body.dataset.preview === "yes";

/** Make an element; children that are text become text, never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function show(heading, ...children) {
  const title = make("h1", { tabindex: "-1" }, heading);
  page.replaceChildren(title, ...children);
  title.focus();
}

function button(label, act, id) {
  const made = make("button", { type: "button", id }, label);
  made.addEventListener("click", act);
  return made;
}

async function begin() {
  const survey = document.body.dataset.survey;
  const language = document.documentElement.lang;
  const answer = await fetch(`/s/${survey}/brief/${language}.json`, { credentials: "omit" });
  const brief = await answer.json();
  const code = readCode(location.hash);
  for (const link of document.querySelectorAll(".languages a")) link.hash = location.hash;
  document.getElementById("check").hidden = false;
  document.getElementById("laws").textContent = brief.items.map(
    (item) => `ε = ${Math.ceil(epsilonOf(item) * 1e4 - 1e-9) / 1e4}  ${item.id}`).join("\n");
  document.getElementById("check").addEventListener("toggle", () => showHash(brief), { once: true });
  if (!globalThis.crypto || !crypto.getRandomValues) {
    show(brief.title, make("p", { role: "alert" }, brief.words.no_random));
    return;
  }
  if (brief.items.some((item) => !(epsilonOf(item) <= item.epsilon + 1e-9))) {
    show(brief.title, make("p", { role: "alert", id: "weaker" }, brief.words.weaker));
    return;
  }
  if (brief.closed && !preview) {
    show(brief.title, make("p", { role: "alert", id: "closed" }, brief.words.closed));
    return;
  }
  consent(brief, code);
}

/** A code as it was meant: letters that are misread are put right. */
function readCode(text) {
  return text.toUpperCase().replace(/[^0-9A-Z]/g, "").replace(/O/g, "0").replace(/[IL]/g, "1");
}

function consent(brief, code) {
  const words = brief.words;
  const before = preview ? null : sentBefore(brief, code);
  const form = make("form", { novalidate: "", autocomplete: "off" });
  const input = make("input", {
    id: "code", value: code, autocomplete: "off", autocapitalize: "characters",
    spellcheck: "false", "aria-describedby": "code-help code-error",
  });
  const error = make("p", { id: "code-error", class: "error", role: "alert" });
  if (!preview) {
    form.append(
      make("label", { for: "code" }, words.code), input,
      make("p", { id: "code-help", class: "help" }, words.code_help), error,
    );
  }
  form.append(make("button", { type: "submit", id: "agree" }, words.agree));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = preview ? "PREVIEW" : readCode(input.value);
    if (!given) {
      error.textContent = words.code_missing;
      input.focus();
      return;
    }
    const memory = openMemory(brief, given);
    if (memory === null) {
      error.textContent = words.no_memory;
      return;
    }
    // The token is got now, long before the reports are sent, so that time links them less.
    const refused = preview ? null : await admit(brief, memory, given);
    if (refused !== null) error.textContent = fill(words.failed, { reason: refused });
    else if (memory.state.sent) done(brief, memory, words.sent_before);
    else ask(brief, memory, 0);
  });
  show(
    brief.title,
    preview ? make("p", { class: "notice" }, words.preview) : "",
    make("p", {}, words.intro),
    make("h2", {}, words.consent),
    ...brief.consent.split("\n").map((line) => make("p", {}, line)),
    ...brief.items.map((item) => make("p", { class: "help" }, `${item.text} – ${item.promise}`)),
    make("p", { class: "help" }, brief.together),
    before ? make("p", { class: "notice", id: "before" }, fill(words.before, before)) : "",
    form,
  );
}

function ask(brief, memory, at) {
  if (at === brief.items.length) {
    review(brief, memory);
    return;
  }
  const item = brief.items[at];
  const words = brief.words;
  const heading = fill(words.question, { place: at + 1, count: brief.items.length });
  const next = () => ask(brief, memory, at + 1);
  const stands = () => {
    const report = item.options[memory.report(item)];
    show(heading, make("p", { class: "question" }, item.text),
      make("p", { id: "kept" }, fill(words.kept, { report })), button(words.next, next, "next"));
  };
  if (memory.report(item) !== null) {
    stands();
    return;
  }
  const form = make("form", { novalidate: "", autocomplete: "off" });
  const error = make("p", { class: "error", role: "alert", id: "answer-error" });
  const field = item.kind === "number" ? numberField(item, words) : radioField(item, words);
  form.append(field.element, error, make("button", { type: "submit", id: "throw" }, words.throw));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (memory.report(item) !== null) { // thrown in another tab meanwhile
      field.wipe();
      stands();
      return;
    }
    const thrown = throwFor(item, field, memory);
    if (thrown === null) {
      error.textContent = words.choose_missing;
      return;
    }
    form.remove();
    show(heading, make("p", { class: "question" }, item.text),
      ...fallen(item, thrown, words), button(words.next, next, "next"));
  });
  show(heading, form);
}

/** The only place where a true answer is held: read, randomised, and wiped from the form. */
function throwFor(item, field, memory) {
  const answer = field.read();
  if (answer === null) return null;
  const thrown = respond(item, answer);
  try {
    memory.keep(({ reports }) => ({ reports: { ...reports, [item.id]: thrown.report } }));
  } finally {
    field.wipe();
  }
  return thrown;
}

function radioField(item, words) {
  const group = make("fieldset", { "aria-describedby": "choose-help answer-error" },
    make("legend", { class: "question" }, item.text),
    make("p", { class: "help", id: "choose-help" }, words.choose));
  const inputs = item.options.map((option, at) => {
    const input = make("input", { type: "radio", name: "answer", id: `option-${at}`, autocomplete: "off" });
    group.append(make("div", { class: "option" }, input, make("label", { for: `option-${at}` }, option)));
    return input;
  });
  return {
    element: group,
    read() {
      const at = inputs.findIndex((input) => input.checked);
      return at < 0 ? null : at;
    },
    wipe() {
      for (const input of inputs) input.checked = false;
      group.replaceChildren();
    },
  };
}

function numberField(item, words) {
  const input = make("input", {
    type: "number", id: "number", step: "any", min: item.low, max: item.high, inputmode: "decimal",
    autocomplete: "off", "aria-describedby": "choose-help number-help answer-error",
  });
  const group = make("div", {},
    make("label", { class: "question", for: "number" }, item.text),
    make("p", { class: "help", id: "choose-help" }, words.choose), input,
    make("p", { class: "help", id: "number-help" }, fill(words.number_help, item)));
  return {
    element: group,
    read() {
      return input.value.trim() === "" || !Number.isFinite(input.valueAsNumber)
        ? null : input.valueAsNumber;
    },
    wipe() {
      input.value = "";
      group.replaceChildren();
    },
  };
}

/** The coins as they fell, what will be sent, and why it tells little. */
function fallen(item, thrown, words) {
  const told = toldShare(item);
  const two = item.options.length === 2;
  const coins = make("ol", { class: "throws", id: "throws" });
  if (item.kind === "number") coins.append(make("li", {}, fill(words.rounding, item)));
  coins.append(firstThrow(told, thrown.told, words));
  if (!thrown.told) coins.append(two ? secondCoin(item, thrown, words) : secondDie(item, thrown, words));
  return [
    make("h2", {}, words.fell), coins,
    make("h2", {}, words.will_send),
    make("p", { class: "report", id: "report", "aria-live": "polite" }, item.options[thrown.report]),
    make("h2", {}, words.why),
    ...(item.deniable.length ? [make("p", {}, item.deniable[thrown.report])] : []),
    make("p", {}, item.promise),
    make("p", { class: "help" }, words.not_honest),
  ];
}

function firstThrow(told, truthful, words) {
  if (told === 0.5) {
    const face = make("span", { class: `coin ${truthful ? "heads" : "tails"}`, "aria-hidden": "true" });
    return make("li", {}, face, truthful ? words.coin_truth : words.coin_chance);
  }
  const wheel = make("span", { class: "wheel", "aria-hidden": "true" }, make("span", { class: "needle" }));
  wheel.style.setProperty("--told", `${told}turn`);
  // The needle rests inside the part that was drawn; where exactly means nothing.
  wheel.style.setProperty("--rest", `${truthful ? told / 2 : (1 + told) / 2}turn`);
  const shares = { told: percent(told), chance: percent(1 - told) };
  return make("li", {}, wheel, fill(truthful ? words.wheel_truth : words.wheel_chance, shares));
}

function secondCoin(item, thrown, words) {
  const side = thrown.report === 1 ? "heads" : "tails";
  const face = make("span", { class: `coin second ${side}`, "aria-hidden": "true" });
  return make("li", {}, face, fill(words.second_coin, { side: words[side], report: item.options[thrown.report] }));
}

function secondDie(item, thrown, words) {
  const face = make("span", { class: "die", "aria-hidden": "true" }, String(thrown.report + 1));
  return make("li", {}, face, fill(words.second_die, { report: item.options[thrown.report] }));
}

function percent(share) {
  return `${Math.round(share * 1000) / 10}%`;
}

function review(brief, memory) {
  const words = brief.words;
  const status = make("p", { id: "status", role: "status" });
  const list = make("dl", { class: "reports" });
  for (const item of brief.items) {
    list.append(make("dt", {}, item.text), make("dd", {}, item.options[memory.state.reports[item.id]]));
  }
  const send = button(words.send, async () => {
    send.disabled = true;
    status.textContent = words.sending;
    const refused = await submit(brief, memory);
    if (refused === null) {
      done(brief, memory, words.sent_help);
      return;
    }
    status.textContent = fill(words.failed, { reason: refused });
    send.disabled = false;
  }, "send");
  showBytes(body(brief, memory, memory.state.token || { message: "…", signature: "…" }));
  show(words.review, make("p", {}, words.review_help), list,
    preview ? make("p", { class: "notice" }, words.preview) : send, status);
}

/** The bytes that are sent: reports in the order of the questions, and the one-time token. */
function body(brief, memory, token) {
  return JSON.stringify({
    version: 1,
    survey: brief.survey,
    message: token.message,
    signature: token.signature,
    nonce: memory.state.nonce,
    reports: brief.items.map((item) => memory.state.reports[item.id]),
  });
}

/** Get the token for this invitation, unless the device has it; null, or why it was refused. */
async function admit(brief, memory, code) {
  try {
    if (memory.state.token === null) {
      const token = await obtainToken(brief, code, memory);
      memory.keep(() => ({ token, blinding: null }));
    }
    return null;
  } catch (problem) {
    return problem instanceof TypeError ? brief.words.network : problem.message;
  }
}

/** Send once more as often as needed: the same bytes each time, which count once. */
async function submit(brief, memory) {
  try {
    memory.keep(() => ({ tried: true })); // what is kept counts, not what this tab remembers
    const bytes = body(brief, memory, memory.state.token);
    showBytes(bytes);
    const answer = await fetch(`/s/${brief.survey}/reports`, {
      method: "POST", body: bytes, credentials: "omit", referrerPolicy: "no-referrer",
      headers: { "Content-Type": "application/json" },
    });
    if (!answer.ok) return (await answer.json()).error;
    memory.keep(() => ({ sent: true }));
    return null;
  } catch (problem) {
    return problem instanceof TypeError ? brief.words.network : problem.message;
  }
}

function done(brief, memory, message) {
  showBytes(body(brief, memory, memory.state.token));
  show(brief.words.sent, make("p", { id: "done" }, message));
}

// ---------------------------------------------------------------- check it yourself

function showBytes(bytes) {
  document.getElementById("bytes").textContent = bytes;
}

/** The hash of every script of this page, from the bytes that the browser got. */
async function showHash(brief) {
  const shown = document.getElementById("hash");
  if (!globalThis.crypto || !crypto.subtle) {
    shown.textContent = brief.words.check_no_hash;
    return;
  }
  const lines = [];
  for (const name of ["respondent.js", "tokens.js", "blind.js"]) {
    const source = await (await fetch(new URL(name, import.meta.url), { credentials: "omit" })).arrayBuffer();
    lines.push(`${toHex(await crypto.subtle.digest("SHA-256", source))}  ${name}`);
  }
  const key = await keyFingerprint(brief);
  if (key) lines.push(`${key}  token key`);
  shown.textContent = lines.join("\n");
}

// Another invitation in the same tab is another person: begin afresh.
addEventListener("hashchange", () => location.reload());
begin();
