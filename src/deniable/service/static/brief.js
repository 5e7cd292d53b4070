// What the server tells about a survey, checked: whatever is not as it must be, nothing is thrown.

import { WORD, epsilonOf } from "./chance.js";

export const MOST_EPSILON = 8; // for one question; more would protect nobody

const KINDS = ["yes/no", "choice", "scale", "number"];
const MOST_OPTIONS = 32;
const MOST_ITEMS = 20;

/** Null, or what is wrong with a brief. `page` says which survey it must be, and who is let in how. */
export function faultOf(brief, page) {
  const isText = (value) => typeof value === "string" && value.length > 0;
  if (typeof brief !== "object" || brief === null) return "no survey";
  if (!/^[0-9a-f]{32}$/.test(page.survey) || brief.survey !== page.survey) return "another survey";
  if (brief.admission !== page.admission) return "another admission than the page says";
  const signed = brief.admission === "blind tokens";
  if (!signed && brief.admission !== "linkable codes") return "an unknown admission";
  if (signed ? !isText(brief.key) : brief.key !== null) return "a key that does not belong here";
  if (![brief.title, brief.consent].every(isText) || typeof brief.closed !== "boolean") return "texts";
  const items = brief.items;
  if (!Array.isArray(items) || items.length < 1 || items.length > MOST_ITEMS) return "questions";
  if (new Set(items.map((item) => item?.id)).size !== items.length) return "two questions of one name";
  const fault = items.map(faultOfItem).find((each) => each !== null);
  if (fault !== undefined) return fault;
  // One throw stands for whatever is asked in the same words, so one question asks in them.
  const differ = new Set(items.map((item) => plain(item.text))).size === items.length;
  return differ ? null : "two questions in the same words";
}

/** What a text says: its letters and numbers, however they are set, spaced or put in code points. */
export function plain(text) {
  const letters = text.normalize("NFKD").toUpperCase().normalize("NFKD");
  return letters.replace(/[^\p{L}\p{N}]|\p{Default_Ignorable_Code_Point}/gu, "");
}

function faultOfItem(item) {
  const isText = (value) => typeof value === "string" && value.length > 0;
  if (typeof item?.id !== "string" || !/^[a-z0-9][a-z0-9-]{0,59}$/.test(item.id)) return "a name";
  if (!KINDS.includes(item.kind) || !isText(item.text)) return `${item.id}: its kind`;
  const options = item.options;
  if (!Array.isArray(options) || !options.every(isText)) return `${item.id}: its options`;
  const two = item.kind === "yes/no" || item.kind === "number";
  if (options.length < 2 || options.length > (two ? 2 : MOST_OPTIONS)) return `${item.id}: its options`;
  if (item.kind === "number" && !hasBounds(item)) return `${item.id}: its bounds`;
  const truth = item.law?.thresholds?.truth;
  if (typeof truth !== "string" || !/^[0-9]{1,20}$/.test(truth)) return `${item.id}: its law`;
  // The answer is sent at least as often as chance would: the coins can throw nothing else.
  if (BigInt(truth) * BigInt(options.length) < WORD - BigInt(MOST_OPTIONS)) return `${item.id}: its law`;
  if (!(epsilonOf(item) <= MOST_EPSILON)) return `${item.id}: ε above ${MOST_EPSILON}`;
  return null;
}

function hasBounds({ low, high }) {
  const number = (text) => (typeof text === "string" && text.trim() !== "" ? Number(text) : NaN);
  return Number.isFinite(number(low)) && Number.isFinite(number(high)) && number(low) < number(high);
}
