// @ts-check
/** Which rows of the screen a line of the log takes: one, or several where long lines are wrapped. */

/** @typedef {import("./log-buffer.js").LogBuffer} LogBuffer */

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/u;
const TAB = 8;

/** @param {string} character */
const widthOf = (character) => (character === "\t" ? TAB : WIDE.test(character) ? 2 : 1);

/**
 * The places at which a text is cut so that no part is wider than so many columns.
 * @param {string} text
 * @param {number} columns
 * @returns {number[]} the begin of every part but the first
 */
export function cuts(text, columns) {
  if (text.length * 2 <= columns && !text.includes("\t")) return [];
  /** @type {number[]} */
  const found = [];
  let [width, at] = [0, 0];
  for (const character of text) {
    const own = widthOf(character);
    if (width + own > columns && width > 0) {
      found.push(at);
      width = 0;
    }
    width += own;
    at += character.length;
  }
  return found;
}

export class LogLayout {
  /** @param {LogBuffer} buffer */
  constructor(buffer) {
    this.buffer = buffer;
    this.columns = 0; // 0: lines are not wrapped
    this.dropped = 0;
    /** @type {number[]} the row after each line */
    this.ends = [];
  }

  /** @param {number} columns */
  wrap(columns) {
    if (columns === this.columns) return;
    this.columns = columns;
    this.ends = [];
  }

  /** Lines were added, written again or dropped. */
  update() {
    const { buffer } = this;
    if (!this.columns) return;
    if (buffer.dropped !== this.dropped) this.ends = [];
    this.dropped = buffer.dropped;
    this.ends.length = Math.min(this.ends.length, Math.max(0, buffer.lines.length - 1)); // the last one may have grown
    for (let at = this.ends.length; at < buffer.lines.length; at++) {
      this.ends.push((this.ends[at - 1] ?? 0) + 1 + cuts(buffer.text(at), this.columns).length);
    }
  }

  get rows() {
    return this.columns ? (this.ends.at(-1) ?? 0) : this.buffer.lines.length;
  }

  /** The first row of a line. @param {number} line */
  rowOf(line) {
    return this.columns ? (this.ends[line - 1] ?? 0) : line;
  }

  /** The line that a row belongs to. @param {number} row */
  lineAt(row) {
    if (!this.columns) return row;
    let [low, high] = [0, this.ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] <= row) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
