// @ts-check
/** Searches the lines of a log a slice at a time, so that the page never stands still; new lines are searched as they come. */

const SLICE = 8; // ms of work between two frames
const MOST_HITS = 10_000; // lines; beyond them only the count goes on

/** @typedef {import("./log-buffer.js").LogBuffer} LogBuffer */

export class LogSearch {
  /** @param {LogBuffer} buffer @param {() => void} changed */
  constructor(buffer, changed) {
    this.buffer = buffer;
    this.changed = changed;
    /** @type {RegExp|null} */
    this.pattern = null;
    this.problem = "";
    /** @type {number[]} lines, counted with those that were dropped */
    this.hits = [];
    this.found = 0;
    this.upTo = 0;
    this.working = 0;
  }

  /** @param {string} text @param {{regex: boolean, exact: boolean}} how */
  set(text, { regex, exact }) {
    this.hits = [];
    this.found = this.upTo = 0;
    this.problem = "";
    this.pattern = null;
    if (text) {
      try {
        this.pattern = new RegExp(regex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), exact ? "gu" : "giu");
      } catch {
        this.problem = "This is not a regular expression.";
      }
    }
    this.more();
    this.changed();
  }

  /** Lines were added. */
  more() {
    if (this.pattern && !this.working) this.working = setTimeout(() => this.#slice());
  }

  #slice() {
    this.working = 0;
    const until = performance.now() + SLICE;
    const { buffer } = this;
    this.upTo = Math.max(this.upTo, buffer.dropped);
    while (this.pattern && this.upTo < buffer.dropped + buffer.lines.length) {
      if (performance.now() > until) {
        this.more();
        break;
      }
      if (this.#fits(buffer.text(this.upTo - buffer.dropped))) {
        this.found += 1;
        if (this.hits.length < MOST_HITS) this.hits.push(this.upTo);
      }
      this.upTo += 1;
    }
    this.changed();
  }

  /** @param {string} text */
  #fits(text) {
    const pattern = /** @type {RegExp} */ (this.pattern);
    pattern.lastIndex = 0;
    return pattern.test(text);
  }

  /**
   * The stretches of a text that fit, each with its begin and end.
   * @param {string} text
   * @returns {[number, number][]}
   */
  stretches(text) {
    if (!this.pattern) return [];
    /** @type {[number, number][]} */
    const found = [];
    for (const match of text.matchAll(this.pattern)) {
      if (match[0] === "" || found.length > 200) break;
      found.push([match.index, match.index + match[0].length]);
    }
    return found;
  }

  /**
   * The hit after or before a line; the first follows the last.
   * @param {number} line counted with those that were dropped
   * @param {1|-1} by
   * @returns {number} a line, or -1
   */
  next(line, by) {
    const hits = this.hits.filter((hit) => hit >= this.buffer.dropped);
    if (!hits.length) return -1;
    const found = by > 0 ? hits.find((hit) => hit > line) : hits.findLast((hit) => hit < line);
    return found ?? (by > 0 ? hits[0] : hits[hits.length - 1]);
  }
}
