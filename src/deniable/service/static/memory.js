// What this device remembers: reports, never answers. A throw stands, and what left is counted.

import { toHex } from "./blind.js";
import { epsilonOf } from "./chance.js";

const PREFIX = "deniable:";

/** What is kept for one code of one survey, shared by all tabs. */
export class Memory {
  constructor(survey, code, kept) {
    this.survey = survey;
    this.key = `${PREFIX}${survey}:${code}`;
    this.kept = kept;
    this.state = {
      version: 1, nonce: toHex(crypto.getRandomValues(new Uint8Array(16))), token: null,
      blinding: null, reports: {}, thrown: [], tried: false, refused: false, sent: false, from: [],
      others: [],
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

  /** Keep what fell, and what it costs. */
  throwOnce(item, report) {
    this.keep(({ reports, thrown }) => ({
      reports: { ...reports, [item.id]: report },
      thrown: [...thrown, [printOf(item), epsilonOf(item)]],
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
    this.keep(({ reports, from }) => ({
      reports: { ...old.reports, ...reports }, from: [...from, key],
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
export function openMemory(survey, code, kept) {
  try {
    return new Memory(survey, code, kept);
  } catch {
    return null;
  }
}

/**
 * What left this device for this site before, whatever became of it: how many submissions, their
 * ε, and the ε by question. One that was sent again under another code threw nothing anew.
 */
export function leftBefore(survey, code) {
  const before = { count: 0, spent: 0, questions: new Map() };
  try {
    for (const [key, state] of memories()) {
      if (key === `${PREFIX}${survey}:${code}` || !state.tried || state.thrown.length === 0) continue;
      before.count += 1;
      for (const [print, epsilon] of state.thrown) {
        before.spent += epsilon;
        before.questions.set(print, (before.questions.get(print) ?? 0) + epsilon);
      }
    }
  } catch {
    return before; // what cannot be read is not counted; nothing can be answered here either
  }
  return before;
}

/** A question by what it asks, so that another name or survey does not hide that it is the same. */
export function printOf(item) {
  const plain = (text) => text.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  return JSON.stringify([plain(item.text), item.options.map(plain), item.law.thresholds.truth]);
}

/** All that is kept here, as [key, state]. */
function memories() {
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => [key, JSON.parse(localStorage.getItem(key))]);
}
