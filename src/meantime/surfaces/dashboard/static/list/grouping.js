// @ts-check
/** What the list is grouped by. Groups of a state stand in a fixed order; all others by their names, so that none moves. */
import { GROUPS, groupOf, rankOf } from "./row-groups.js";
import { kindOf } from "./row-texts.js";

/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {"state"|"conversation"|"batch"|"kind"} Grouping */

/** @type {Record<Exclude<Grouping, "state">, (row: Row) => string>} */
const NAME_OF = {
  conversation: (row) => row.thread,
  batch: (row) => row.batch ?? "",
  kind: kindOf,
};

/** @type {Grouping[]} */
export const GROUPINGS = ["state", "conversation", "batch", "kind"];

/** @param {string} name as an address has it @returns {Grouping} */
export const groupingOf = (name) => GROUPINGS.find((each) => each === name) ?? "state";

const STATES = GROUPS.map(({ name }) => name);
const APART = 2e15; // ms; more than the ranks of one state reach

/** @param {Grouping} grouping @param {Row} row @returns {{group: string, rank: number}} */
export function spotOf(grouping, row) {
  const [state, rank] = [groupOf(row), rankOf(row)];
  if (grouping === "state") return { group: state, rank };
  return { group: NAME_OF[grouping](row), rank: STATES.indexOf(state) * APART + rank };
}

/** @param {Grouping} grouping @param {string[]} names of all groups @returns {string[]} in their order */
export const inOrder = (grouping, names) =>
  grouping === "state" ? STATES : names.sort((a, b) => Number(!a) - Number(!b) || a.localeCompare(b, "en", { numeric: true }));

/** @param {Grouping} grouping @param {string} name */
export function titleOf(grouping, name) {
  if (grouping === "state") return GROUPS.find((group) => group.name === name)?.title ?? name;
  return name || "Without a batch";
}
