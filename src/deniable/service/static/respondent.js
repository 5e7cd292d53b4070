// What this page does, in the order in which it happens:
//   1. You choose an answer. It lives in one variable of one function (`throwFor`).
//   2. That function throws the coins at once, keeps the randomised report, and forgets the answer.
//   3. Only reports are stored on this device (so that a reload cannot throw again) and sent.
// The page is one text with all its scripts inside: no other script, no cookie, and no other place to
// which anything is sent. Numbers about privacy are worked out here from what is thrown.

import { toHex } from "./blind.js";
import { faultOf } from "./brief.js";
import {
  epsilonOf, respond, shownEpsilon, shownRatio, shownSuspicion, toldShare,
} from "./chance.js";
import { leftBefore, openMemory, printOf } from "./memory.js";
import { keyFingerprint, obtainToken } from "./tokens.js";
import { wordsOf } from "./words.js";

// ---------------------------------------------------------------- the page

const page = document.getElementById("page");
const preview = document.body.dataset.preview === "yes";
const words = wordsOf(document.documentElement.lang);

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
  const language = document.documentElement.lang;
  const { survey, admission } = document.body.dataset;
  const answer = await fetch(`/s/${survey}/brief/${language}.json`, { credentials: "omit" });
  const brief = await answer.json();
  const fault = faultOf(brief, { survey, admission });
  if (fault !== null) {
    page.append(make("p", { role: "alert", id: "weaker" }, fill(words.weaker, { why: fault })));
    return;
  }
  const code = readCode(location.hash);
  for (const link of document.querySelectorAll(".languages a")) link.hash = location.hash;
  document.getElementById("check").hidden = false;
  document.getElementById("laws").textContent = brief.items.map(
    (item) => `ε = ${shownEpsilon(epsilonOf(item))}  ${item.id}`).join("\n");
  document.getElementById("check").addEventListener("toggle", () => showHash(brief));
  if (!globalThis.crypto || !crypto.getRandomValues) {
    show(brief.title, make("p", { role: "alert" }, words.no_random));
    return;
  }
  if (brief.closed && !preview) {
    show(brief.title, make("p", { role: "alert", id: "closed" }, words.closed));
    return;
  }
  consent(brief, code);
}

/** The guarantee of one question in one sentence. */
function promise(item) {
  return fill(words.promise, { ratio: shownRatio(item), epsilon: shownEpsilon(epsilonOf(item)) });
}

/** A code as it was meant: letters that are misread are put right. */
function readCode(text) {
  return text.toUpperCase().replace(/[^0-9A-Z]/g, "").replace(/O/g, "0").replace(/[IL]/g, "1");
}

function consent(brief, code) {
  const costs = make("div", {}, ...costsOf(brief, code));
  const form = make("form", { novalidate: "", autocomplete: "off" });
  const input = make("input", {
    id: "code", value: code, autocomplete: "off", autocapitalize: "characters",
    spellcheck: "false", "aria-describedby": "code-help code-error",
  });
  // Under another code nothing was thrown for: what left under the first is counted as well.
  input.addEventListener("input", () =>
    costs.replaceChildren(...costsOf(brief, readCode(input.value))));
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
    const memory = openMemory(brief, given, !preview);
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
    make("p", { id: "admission" },
      brief.admission === "blind tokens" ? words.admission_blind : words.admission_linkable),
    make("h2", {}, words.consent),
    ...brief.consent.split("\n").map((line) => make("p", {}, line)),
    costs,
    form,
  );
}

/** What each question tells at most, all of them, and together with what left before. */
function costsOf(brief, code) {
  const before = leftBefore(brief, preview ? null : code);
  const epsilon = brief.items.reduce((sum, item) => sum + epsilonOf(item), 0);
  return [
    ...brief.items.flatMap((item) => [
      make("p", { class: "help" }, `${item.text} – ${promise(item)}`), ...answeredBefore(item, before),
    ]),
    make("p", { class: "help", id: "together" },
      fill(words.together, { epsilon: shownEpsilon(epsilon) })),
    before.count && !preview ? make("p", { class: "notice", id: "before" }, fill(words.before, {
      count: before.count, spent: shownEpsilon(before.spent),
      epsilon: shownEpsilon(before.spent + epsilon),
    })) : "",
  ];
}

/** That the same question left this device before, under whatever name. */
function answeredBefore(item, { questions }) {
  const spent = questions.get(printOf(item));
  if (spent === undefined || preview) return [];
  return [make("p", { class: "notice again" }, fill(words.again, { spent: shownEpsilon(spent) }))];
}

/** Ask whose the reports are that were refused here under another code; false where there are none. */
function askWhose(brief, memory, at) {
  const found = memory.refused();
  if (found === null) return false;
  const choose = (act) => () => {
    act(found.key);
    ask(brief, memory, at);
  };
  show(words.mine, make("p", { id: "mine" }, fill(words.mine_help, found)),
    button(words.mine_yes, choose((key) => memory.adopt(key)), "mine-yes"),
    button(words.mine_no, choose((key) => memory.disown(key)), "mine-no"));
  return true;
}

function ask(brief, memory, at) {
  if (at === brief.items.length) {
    review(brief, memory);
    return;
  }
  const item = brief.items[at];
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
  if (askWhose(brief, memory, at)) return;
  const form = make("form", { novalidate: "", autocomplete: "off" });
  const error = make("p", { class: "error", role: "alert", id: "answer-error" });
  const field = item.kind === "number" ? numberField(item) : radioField(item);
  form.append(field.element, error, make("button", { type: "submit", id: "throw" }, words.throw));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (memory.report(item) !== null) { // thrown in another tab meanwhile
      field.wipe();
      stands();
      return;
    }
    if (memory.refused() !== null) { // refused under another code meanwhile
      field.wipe();
      askWhose(brief, memory, at);
      return;
    }
    const thrown = throwFor(item, field, memory);
    if (thrown === null) {
      error.textContent = words.choose_missing;
      return;
    }
    form.remove();
    show(heading, make("p", { class: "question" }, item.text),
      ...fallen(item, thrown), button(words.next, next, "next"));
  });
  show(heading, form);
}

/** The only place where a true answer is held: read, randomised, and wiped from the form. */
function throwFor(item, field, memory) {
  const answer = field.read();
  if (answer === null) return null;
  const thrown = respond(item, answer);
  try {
    memory.throwOnce(item, thrown.report);
  } finally {
    field.wipe();
  }
  return thrown;
}

function radioField(item) {
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

function numberField(item) {
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
function fallen(item, thrown) {
  const told = toldShare(item);
  const two = item.options.length === 2;
  const coins = make("ol", { class: "throws", id: "throws" });
  if (item.kind === "number") coins.append(make("li", {}, fill(words.rounding, item)));
  coins.append(firstThrow(told, thrown.told));
  if (!thrown.told) coins.append(two ? secondCoin(item, thrown) : secondDie(item, thrown));
  return [
    make("h2", {}, words.fell), coins,
    make("h2", {}, words.will_send),
    make("p", { class: "report", id: "report", "aria-live": "polite" }, item.options[thrown.report]),
    make("h2", {}, words.why),
    ...(item.kind === "number" ? [] : [make("p", { id: "deniable" }, deniable(item, thrown.report))]),
    make("p", { id: "promise" }, promise(item)),
    make("p", { class: "help" }, words.not_honest),
  ];
}

function deniable(item, report) {
  const option = item.options[report];
  return fill(words.deniable, {
    report: option, answer: option, before: "10%", after: shownSuspicion(item),
  });
}

function firstThrow(told, truthful) {
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

function secondCoin(item, thrown) {
  const side = thrown.report === 1 ? "heads" : "tails";
  const face = make("span", { class: `coin second ${side}`, "aria-hidden": "true" });
  return make("li", {}, face, fill(words.second_coin, { side: words[side], report: item.options[thrown.report] }));
}

function secondDie(item, thrown) {
  const face = make("span", { class: "die", "aria-hidden": "true" }, String(thrown.report + 1));
  return make("li", {}, face, fill(words.second_die, { report: item.options[thrown.report] }));
}

function percent(share) {
  return `${Math.round(share * 1000) / 10}%`;
}

function review(brief, memory) {
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
    return problem instanceof TypeError ? words.network : problem.message;
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
    if (answer.ok) {
      memory.settle();
      return null;
    }
    // Refused: who comes back with another code sends the same. A server that is only busy, or
    // cannot be reached, is asked again under this one.
    if (answer.status >= 400 && answer.status < 500) memory.keep(() => ({ refused: true }));
    return (await answer.json()).error;
  } catch (problem) {
    return problem instanceof TypeError ? words.network : problem.message;
  }
}

function done(brief, memory, message) {
  showBytes(body(brief, memory, memory.state.token));
  show(words.sent, make("p", { id: "done" }, message));
}

// ---------------------------------------------------------------- check it yourself

function showBytes(bytes) {
  document.getElementById("bytes").textContent = bytes;
}

/** The hash of every script and style in this page, from the text that is used, and of the key. */
async function showHash(brief) {
  const shown = document.getElementById("hash");
  if (!globalThis.crypto || !crypto.subtle) {
    shown.textContent = words.check_no_hash;
    return;
  }
  const lines = [];
  for (const part of document.querySelectorAll("script, style, link[rel~=stylesheet]")) {
    const source = new TextEncoder().encode(part.textContent);
    const hash = toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", source)));
    const other = part.src || part.href;
    lines.push(other ? `–  ${other}` : `${hash}  ${part.localName}`);
  }
  const key = await keyFingerprint(brief);
  if (key) lines.push(`${key}  token key`);
  shown.textContent = lines.join("\n");
}

// Another invitation in the same tab is another person: begin afresh.
addEventListener("hashchange", () => location.reload());
begin();
