// @ts-check
/** The lines of a log that the page holds: bounded, with gaps where bytes were not kept. */
import { PLAIN, overwritten, plain, spansOf } from "./ansi.js";

/** @typedef {import("./ansi.js").Style} Style */

export const MOST_LINES = 200_000;
export const MOST_CHARACTERS = 64_000_000;
export const LONGEST = 4_000; // characters of a line that are shown; the download has all

/**
 * @typedef {object} Line
 * @property {string} text with its escapes
 * @property {Style} style that it begins with
 * @property {number} number counted from the begin, or from the newest gap; 0 is a gap itself
 * @property {number} lost bytes that are missing here; 0 for a line
 * @property {boolean} counted whether the number is that of the whole output: false after a gap
 */

export class LogBuffer {
  constructor() {
    /** @type {Line[]} */
    this.lines = [];
    this.dropped = 0; // lines that were taken from the front again
    this.characters = 0;
    /** @type {Style} */
    this.style = PLAIN;
    this.number = 0;
    this.counted = true;
    this.rest = ""; // a line that has not ended
    this.skipped = 0; // characters in the middle of that line, which are not held
  }

  /** @param {string} text the next piece, cut anywhere */
  push(text) {
    this.#takeRest();
    const parts = (this.rest + text).split("\n");
    this.rest = parts.pop() ?? "";
    for (const part of parts) this.#end(part);
    if (this.rest.length > 4 * LONGEST) {
      this.skipped += this.rest.length - 2 * LONGEST;
      this.rest = this.rest.slice(0, LONGEST) + this.rest.slice(-LONGEST);
    }
    this.#bound();
    if (this.rest) this.#add(this.rest);
  }

  /** @param {number} lost bytes that come before the next piece, and were not kept */
  gap(lost) {
    this.#takeRest();
    if (this.rest) this.#end(this.rest);
    this.rest = "";
    this.style = PLAIN;
    this.number = 0;
    this.counted = false;
    this.lines.push({ text: "", style: PLAIN, number: 0, lost, counted: false });
  }

  /** The text of a line without colours, as far as it is shown. @param {number} index */
  text(index) {
    const line = this.lines[index];
    return line ? plain(line.text) : "";
  }

  /** @param {number} index */
  spans(index) {
    const line = this.lines[index];
    return line ? spansOf(line.text, line.style).spans : [];
  }

  /** The unfinished line is on the page, too; it is written again when more of it comes. */
  #takeRest() {
    if (!this.rest || !this.lines.length) return;
    const last = /** @type {Line} */ (this.lines.pop());
    this.characters -= last.text.length;
    this.style = last.style;
    this.number -= 1;
  }

  /** A line that has ended. @param {string} raw */
  #end(raw) {
    this.#add(raw);
    this.skipped = 0;
  }

  /** @param {string} raw */
  #add(raw) {
    const whole = overwritten(raw);
    const over = whole.length + this.skipped - LONGEST;
    const text = over > 0 ? `${whole.slice(0, LONGEST)}… ${over} more characters` : whole;
    this.number += 1;
    this.lines.push({ text, style: this.style, number: this.number, lost: 0, counted: this.counted });
    this.characters += text.length;
    if (raw.includes("\x1b")) this.style = spansOf(raw, this.style).style;
  }

  #bound() {
    if (this.lines.length <= MOST_LINES && this.characters <= MOST_CHARACTERS) return;
    let over = Math.max(this.lines.length - MOST_LINES * 0.9, 0);
    for (let left = this.characters; left > MOST_CHARACTERS * 0.9 && over < this.lines.length; over++) left -= this.lines[over].text.length;
    for (const line of this.lines.splice(0, Math.ceil(over))) this.characters -= line.text.length;
    this.dropped += Math.ceil(over);
  }
}
