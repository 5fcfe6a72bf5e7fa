// @ts-check
/**
 * The search language, as the daemon reads it: `status:failed,running agent:review since:7d "quoted words" -kind:shell`.
 * The daemon finds; this file makes chips of a query, and says whether a row that has just changed still belongs.
 */
import { ms } from "./format.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {{name: string, values: string[], not: boolean, text: string}} Term a text has no name */

export const QUALIFIERS = ["status", "kind", "agent", "thread", "batch", "since", "until"];

const TERM = /(-)?(?:([a-z]+):)?("(?:[^"\\]|\\.)*"?|\S+)/gi;
const BARE = /^[^\s",:\\-][^\s",:\\]*$/; // a value that needs no quotation marks
const LONGEST = 1_000; // characters
const AGO = /^(\d+)\s*([smhdw])$/;
const ENDED = ["completed", "failed", "cancelled", "timed_out", "lost"];
/** @type {Record<string, string[]>} words for several statuses */
const SEVERAL = {
  active: ["queued", "running", "waiting", "cancelling"],
  ended: ENDED,
  done: ENDED,
  error: ["failed", "timed_out", "lost"],
  timeout: ["timed_out"],
};
const UNITS = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

/** @param {string} query @returns {Term[]} */
export function parse(query) {
  return [...query.slice(0, LONGEST).matchAll(TERM)].map(([text, not, name, value]) => {
    const known = QUALIFIERS.includes(name?.toLowerCase());
    if (!known) return { name: "", values: [unquoted(text.replace(/^-/, ""))], not: !!not, text };
    const values = value.startsWith('"') ? [unquoted(value)] : value.split(",").filter(Boolean);
    return { name: name.toLowerCase(), values, not: !!not, text };
  });
}

/** @param {Term[]} terms */
export const print = (terms) => terms.map((term) => term.text).join(" ");

/** @param {string} name @param {string[]} values @returns {Term} */
export function term(name, ...values) {
  const written = values.map((value) => (BARE.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`));
  return { name, values, not: false, text: `${name}:${written.join(",")}` };
}

/**
 * The query with this qualifier alone among those of its name; without values it is taken out.
 * @param {string} query @param {string} name @param {string[]} values
 */
export function withTerm(query, name, ...values) {
  const others = parse(query).filter((each) => each.name !== name);
  return print(values.length ? [...others, term(name, ...values)] : others);
}

/** The value that a query gives a qualifier; "" if it has none, or several. @param {string} query @param {string} name */
export function valueOf(query, name) {
  const found = parse(query).filter((each) => each.name === name && !each.not);
  return found.length === 1 ? found[0].values.join(",") : "";
}

/**
 * Whether a row is what the query asks for.
 * @param {Term[]} terms
 * @param {Row} row
 * @param {boolean} found the daemon said so once: then only what can change is asked again
 */
export function matches(terms, row, found = false) {
  return terms.every((each) => (found && each.name !== "status") || holds(each, row) !== each.not);
}

/** @param {Term} term @param {Row} row */
function holds({ name, values }, row) {
  switch (name) {
    case "status":
      return values
        .map((value) => value.toLowerCase().replace("-", "_"))
        .some((value) => (SEVERAL[value] ?? [value]).includes(row.state));
    case "kind":
      return values.includes(row.kind);
    case "agent":
      return values.includes(row.agent);
    case "thread":
      return values.includes(row.thread);
    case "batch":
      return values.includes(row.batch ?? "");
    case "since":
      return ms(row.createdAt) >= moment(values[0] ?? "");
    case "until":
      return ms(row.createdAt) <= moment(values[0] ?? "");
    default:
      return row.title.toLowerCase().includes((values[0] ?? "").toLowerCase());
  }
}

/** @param {string} value 7d, or a date */
function moment(value) {
  const ago = AGO.exec(value);
  if (!ago) return ms(value);
  return Date.now() - Number(ago[1]) * UNITS[/** @type {keyof UNITS} */ (ago[2])];
}

/** @param {string} value */
function unquoted(value) {
  return value.startsWith('"') ? value.replace(/^"|"$/g, "").replace(/\\(.)/g, "$1") : value;
}
