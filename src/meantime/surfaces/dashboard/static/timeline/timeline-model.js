// @ts-check
/** The spans of a run as a tree of rows, and the scale that they are drawn on. */

/**
 * @typedef {object} Span
 * @property {string} id
 * @property {string|null} parent
 * @property {"queue"|"turn"|"model"|"tool"|"wait"|"output"|"child"} kind
 * @property {string} name
 * @property {string} detail
 * @property {number} startMs since the begin of the timeline
 * @property {number|null} endMs null while it goes on
 * @property {boolean} error
 * @property {string} note
 * @property {string|null} task
 *
 * @typedef {object} Timeline
 * @property {string|null} startedAt
 * @property {string|null} endedAt
 * @property {string} now
 * @property {Span[]} spans
 * @property {number} folded older spans that are only counted
 * @property {{modelMs: number, toolMs: number, waitMs: number, queueMs: number}} totals
 *
 * @typedef {{span: Span, depth: number, parent: boolean}} TimelineRow `parent`: it has rows below it
 */

const DEEPEST = 12;
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map((s) => s * 1_000);

/**
 * Every span below its parent, in the order of their begins; what is below a closed one is left out.
 * @param {Span[]} spans
 * @param {Set<string>} closed
 * @returns {TimelineRow[]}
 */
export function rowsOf(spans, closed) {
  const known = new Set(spans.map((span) => span.id));
  /** @type {Map<string, Span[]>} */
  const below = new Map();
  for (const span of spans) {
    const parent = span.parent !== null && span.parent !== span.id && known.has(span.parent) ? span.parent : "";
    const siblings = below.get(parent);
    if (siblings) siblings.push(span);
    else below.set(parent, [span]);
  }
  /** @type {TimelineRow[]} */
  const rows = [];
  /** @param {string} parent @param {number} depth */
  const walk = (parent, depth) => {
    const found = [...(below.get(parent) ?? [])].sort((one, other) => one.startMs - other.startMs);
    for (const span of found) {
      const open = below.has(span.id) && depth < DEEPEST;
      rows.push({ span, depth, parent: open });
      if (open && !closed.has(span.id)) walk(span.id, depth + 1);
    }
  };
  walk("", 0);
  return rows;
}

/**
 * @param {Timeline} timeline
 * @param {number} now ms on the daemon's clock, as far as it is known
 * @returns {number} how long the timeline is, in ms
 */
export function lengthOf(timeline, now) {
  const began = timeline.startedAt ? Date.parse(timeline.startedAt) : now;
  const ended = timeline.endedAt ? Date.parse(timeline.endedAt) : now;
  const last = timeline.spans.reduce((most, span) => Math.max(most, span.endMs ?? span.startMs), 0);
  return Math.max(ended - began, last, 1);
}

/**
 * Round times, as many as there is room for.
 * @param {number} length ms that are seen
 * @param {number} width px
 * @returns {number} ms between two ticks
 */
export function stepOf(length, width) {
  const room = Math.max(1, Math.floor(width / 80));
  return STEPS.find((step) => length / step <= room) ?? length / room;
}

/** @param {Timeline} timeline @returns {{waits: number, errors: number, calls: number, turns: number}} */
export function countsOf({ spans }) {
  const of = (/** @type {string} */ kind) => spans.filter((span) => span.kind === kind).length;
  return { waits: of("wait"), errors: spans.filter((span) => span.error).length, calls: of("tool"), turns: of("turn") };
}
