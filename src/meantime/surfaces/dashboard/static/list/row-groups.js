// @ts-check
/** Which group a task belongs to, and where in it. */
import { ms } from "../core/format.js";

/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {"needs"|"running"|"queued"|"finished"} GroupName */

/** @type {{name: GroupName, title: string, states: string[]}[]} */
export const GROUPS = [
  { name: "needs", title: "Needs you", states: ["waiting"] },
  { name: "running", title: "Running", states: ["running", "cancelling"] },
  { name: "queued", title: "Queued", states: ["queued"] },
  { name: "finished", title: "Finished", states: ["completed", "failed", "cancelled", "timed_out", "lost"] },
];

/** @type {Map<string, GroupName>} */
const OF_STATE = new Map(GROUPS.flatMap((group) => group.states.map((state) => [state, group.name])));

/** @param {Row} row */
export const groupOf = (row) => OF_STATE.get(row.state) ?? "finished";

export const hasEnded = (/** @type {Row} */ row) => groupOf(row) === "finished";

/**
 * Smaller is higher: the next deadline, the longest running, the next in the queue, the last that ended.
 * @param {Row} row
 */
export function rankOf(row) {
  switch (groupOf(row)) {
    case "needs":
      return ms(row.question?.deadlineAt) || 1e15 + ms(row.createdAt);
    case "running":
      return ms(row.startedAt) || ms(row.createdAt);
    case "queued":
      return row.queuePosition ?? ms(row.createdAt);
    default:
      return -(ms(row.endedAt) || ms(row.lastEventAt));
  }
}
