// What this device remembers: reports, never answers. A throw stands, and what left is counted.

import { toHex } from "./blind.js";
import { plain } from "./brief.js";
import { epsilonOf } from "./chance.js";

const PREFIX = "deniable:";

/** What is kept for one code of one survey, shared by all tabs. */
export class Memory {
  constructor({ survey }, code, kept) {
    this.survey = survey;
    this.key = `${PREFIX}${survey}:${code}`;
    this.kept = kept;
    this.state = {
      version: 1, nonce: toHex(crypto.getRandomValues(new Uint8Array(16))), token: null,
      blinding: null, reports: {}, said: {}, thrown: [], tried: false, refused: false, sent: false, from: [],
      others: [],
    };
    this.keep(() => ({}));
  }

  /** Change what is kept, beginning from what is kept now: another tab may have been faster. */
  keep(change) {
    if (this.kept) {
      const known = localStorage.getItem(this.key);
      if (known !== null) this.state = { said: {}, ...JSON.parse(known) };
    }
    this.state = { ...this.state, ...change(this.state) };
    if (this.kept) localStorage.setItem(this.key, JSON.stringify(this.state));
    return this.state;
  }

  /**
   * The report on a question, if it was thrown for before, in whatever tab: under its name, or in
   * its words under another name, which a server could give it to see another throw. There is one
   * throw for a name and one for its words, whatever else is asked beside it.
   */
  report(item) {
    const { reports, said } = this.keep(() => ({}));
    if (Object.keys(reports).includes(item.id)) return reports[item.id];
    const fell = Object.entries(said).find(([words]) => plain(words) === plain(item.text));
    if (fell === undefined) return null;
    const report = asBefore(item, fell[1]);
    this.keep((now) => ({ reports: { ...now.reports, [item.id]: report } }));
    return report;
  }

  /** Keep what fell, and what it costs. */
  throwOnce(item, report) {
    const fell = { id: item.id, report, option: plain(item.options[report]) };
    this.keep(({ reports, said, thrown }) => ({
      reports: { ...reports, [item.id]: report },
      said: { ...said, [plain(item.text)]: fell },
      thrown: [...thrown, [printOf(item), epsilonOf(item), item.id, plain(item.text)]],
    }));
  }

  /**
   * Reports of this survey that the server refused under another code, and that nobody has sent
   * since: [key, end of the code]. Who threw them sends the same again, for they were seen.
   */
  refused() {
    if (!this.kept) return null;
    const { others, from } = this.keep(() => ({}));
    const known = [this.key, ...others, ...from];
    const found = memories().find(([key, state]) => key.startsWith(`${PREFIX}${this.survey}:`) &&
      !known.includes(key) && state.refused && !state.sent);
    return found ? { key: found[0], code: found[0].slice(-4) } : null;
  }

  /** They are this person's: they stand wherever nothing was thrown for under this code. */
  adopt(key) {
    const old = JSON.parse(localStorage.getItem(key));
    this.keep(({ reports, said, from }) => ({
      reports: { ...old.reports, ...reports }, said: { ...old.said, ...said },
      from: [...from, key],
    }));
  }

  /** They are somebody else's. */
  disown(key) {
    this.keep(({ others }) => ({ others: [...others, key] }));
  }

  /** The server has it. What was refused before under other codes is settled, too. */
  settle() {
    const { from } = this.keep(() => ({ sent: true, refused: false }));
    for (const key of this.kept ? from : []) {
      const old = JSON.parse(localStorage.getItem(key));
      localStorage.setItem(key, JSON.stringify({ ...old, refused: false }));
    }
  }
}

/** The memory of this code; null where the browser keeps nothing. */
export function openMemory(brief, code, kept) {
  try {
    return new Memory(brief, code, kept);
  } catch {
    return null;
  }
}

/**
 * What left this device for this site before, whatever became of it: how many submissions, their
 * ε, and the ε by question. One that was sent again under another code threw nothing anew. Every
 * throw counts, save those of the present code that questions of this brief count (`isCounted`).
 */
export function leftBefore(brief, code) {
  const before = { count: 0, spent: 0, questions: new Map() };
  try {
    for (const [key, state] of memories()) {
      const asked = key === `${PREFIX}${brief.survey}:${code}` ? [...brief.items] : [];
      const left = state.thrown.filter((thrown) => !isCounted(thrown, asked));
      if (!state.tried || left.length === 0) continue;
      before.count += 1;
      for (const [print, epsilon] of left) {
        before.spent += epsilon;
        before.questions.set(print, (before.questions.get(print) ?? 0) + epsilon);
      }
    }
  } catch {
    return before; // what cannot be read is not counted; nothing can be answered here either
  }
  return before;
}

/** Whether a question that is asked counts a throw: each counts one, of no more than its own ε. */
function isCounted([, epsilon, id, words], asked) {
  const at = asked.findIndex((item) => epsilonOf(item) >= epsilon &&
    (item.id === id || plain(item.text) === plain(words)));
  if (at >= 0) asked.splice(at, 1);
  return at >= 0;
}

/** A question by what it asks, so that another name or survey does not hide that it is the same. */
export function printOf(item) {
  return JSON.stringify([plain(item.text), item.options.map(plain), item.law.thresholds.truth]);
}

/** What fell before, among the options that a question has now: no throw, whatever they are. */
function asBefore(item, { report, option }) {
  const at = item.options.map(plain).indexOf(plain(option));
  return at >= 0 ? at : Math.min(report, item.options.length - 1);
}

/** All that is kept here, as [key, state]. */
function memories() {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => [key, JSON.parse(localStorage.getItem(key))]);
}
