// @ts-check
/** What a row says of itself: its state, its progress and its time, as words and numbers. No markup. */
import { countdown, duration, ms, ordinal, time } from "../core/format.js";
import { hasEnded } from "./row-groups.js";

/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {{look: "exact"|"estimate"|"over"|"deadline"|"none", part: number, text: string}} Progress part is 0 to 1 */

/** @type {Record<string, string>} */
export const WORDS = {
  waiting: "Waiting",
  running: "Running",
  cancelling: "Cancelling",
  queued: "Queued",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "Timed out",
  lost: "Lost",
};

/** How long a running task has said nothing; 0 if that is not long. @param {Row} row @param {number} now */
export function silence(row, now) {
  const quiet = now - ms(row.lastEventAt);
  return row.state === "running" && row.silentAfterMs > 0 && quiet >= row.silentAfterMs ? quiet : 0;
}

/** @param {Row} row @param {number} now @returns {{icon: string, word: string}} */
export function stateOf(row, now) {
  const quiet = silence(row, now);
  if (quiet) return { icon: "silent", word: `Silent ${duration(quiet).split(" ")[0]}` };
  return { icon: row.state, word: WORDS[row.state] ?? row.state };
}

/** @param {Row} row @param {number} now */
export function nowOf(row, now) {
  return silence(row, now) ? `nothing since ${time(row.lastEventAt)}` : row.now;
}

/** The kind of work, and who does it. @param {Row} row */
export const kindOf = (row) => (row.agent && row.agent !== row.kind ? `${row.kind} · ${row.agent}` : row.kind);

/** @param {Row} row */
export const kindIcon = (row) => ({ call: "function", tool: "mcp" })[row.kind] ?? row.kind;

/** @param {Row} row @param {number} now */
export function timeOf(row, now) {
  if (hasEnded(row)) return row.endedAt && row.startedAt ? duration(ms(row.endedAt) - ms(row.startedAt), true) : "—";
  if (row.state === "waiting") return duration(now - ms(row.lastEventAt));
  return duration(now - ms(row.startedAt ?? row.createdAt));
}

/**
 * @param {Row} row
 * @param {number} now
 * @param {boolean} stopped the clock stands still, so a countdown would lie
 * @returns {Progress}
 */
export function progressOf(row, now, stopped) {
  if (hasEnded(row)) return { look: "none", part: 0, text: row.endedAt ? `ended ${time(row.endedAt)}` : "" };
  if (row.state === "queued") return { look: "none", part: 0, text: queueText(row) };
  if (row.state === "waiting") return waitingProgress(row, now, stopped);
  if (row.state !== "running") return { look: "none", part: 0, text: "" };
  const elapsed = Math.max(0, now - ms(row.startedAt));
  const isSilent = silence(row, now) > 0;
  if (row.percent !== null) {
    const left = row.percent > 2 ? ` · ${duration((elapsed * (100 - row.percent)) / row.percent).split(" ")[0]} left` : "";
    return {
      look: isSilent ? "over" : "exact",
      part: row.percent / 100,
      text: `${Math.round(row.percent)} %${isSilent ? "" : left}`,
    };
  }
  if (!row.usualMs) return { look: "none", part: 0, text: "" };
  const ratio = elapsed / row.usualMs;
  const times = ratio >= 9.5 ? String(Math.round(ratio)) : ratio.toFixed(1).replace(".0", "");
  const usual = duration(row.usualMs, row.usualMs < 20_000);
  const text = ratio >= 1.5 ? `${times}× usual ${usual}` : `usually ${usual}`;
  return { look: ratio > 1 || isSilent ? "over" : "estimate", part: Math.min(1, ratio), text };
}

/** @param {Row} row */
function queueText(row) {
  if (!row.queuePosition) return "";
  return row.queuePosition === 1 ? `next in ${row.thread}` : `${ordinal(row.queuePosition)} in ${row.thread}`;
}

/** @param {Row} row @param {number} now @param {boolean} stopped @returns {Progress} */
function waitingProgress(row, now, stopped) {
  const deadline = ms(row.question?.deadlineAt);
  if (!deadline) return { look: "none", part: 0, text: `since ${time(row.lastEventAt)}` };
  if (stopped) return { look: "none", part: 0, text: `until ${time(deadline)}` };
  const whole = Math.max(1, deadline - ms(row.lastEventAt));
  return {
    look: "deadline",
    part: Math.max(0, Math.min(1, (deadline - now) / whole)),
    text: `${countdown(deadline - now)} to answer`,
  };
}
