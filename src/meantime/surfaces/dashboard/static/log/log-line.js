// @ts-check
/** One line of a log: its number, its colours, and what the search found in it. */
import { bytes, count } from "../core/format.js";
import { icon } from "../core/icons.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {import("./ansi.js").Span} Span */

const NUMBER = 7; // characters: lines begin at the same column

/**
 * Spans, cut so that every stretch begins and ends with a span.
 * @param {Span[]} spans
 * @param {[number, number][]} stretches
 * @returns {(Span & {hit: boolean})[]}
 */
export function marked(spans, stretches) {
  /** @type {(Span & {hit: boolean})[]} */
  const out = [];
  let at = 0;
  for (const span of spans) {
    let from = 0;
    for (const [begin, end] of stretches) {
      const [low, high] = [Math.max(begin - at, from), Math.min(end - at, span.text.length)];
      if (low >= high) continue;
      if (low > from) out.push({ ...span, text: span.text.slice(from, low), hit: false });
      out.push({ ...span, text: span.text.slice(low, high), hit: true });
      from = high;
    }
    if (from < span.text.length) out.push({ ...span, text: span.text.slice(from), hit: false });
    at += span.text.length;
  }
  return out;
}

/** @param {Span & {hit: boolean}} span */
function spanView(span) {
  if (!span.hit && !span.names && !span.link) return span.text;
  const text = span.hit ? html`<mark>${span.text}</mark>` : span.text;
  const inner = span.names ? html`<span class=${span.names}>${text}</span>` : text;
  if (!span.link) return inner;
  return html`<a href=${span.link} title=${span.link} target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

/**
 * @param {import("./log-buffer.js").Line} line
 * @param {(Span & {hit: boolean})[][]} parts one for each row
 * @param {boolean} current
 */
export function lineView(line, parts, current) {
  const number = (line.counted ? count(line.number) : `+${count(line.number)}`).padStart(NUMBER).padEnd(NUMBER + 2);
  const title = line.counted ? nothing : "counted from the gap";
  // As flat as can be: a log that grows quickly renders every row in every frame.
  const whole = parts.length === 1 ? parts[0].map(spanView) : parts.map((part) => html`<span class="log-part">${part.map(spanView)}</span>`);
  const text = whole.length === 1 ? whole[0] : whole;
  return html`<div class="log-line" ?data-current=${current}><span class="log-number" title=${title}>${number}</span>${text}</div>`;
}

/** @param {number} lost bytes */
export const gapView = (lost) => html`<div class="log-line log-gap">
  ${icon("warning")}<b>${bytes(lost)} not kept</b><span class="quiet">the first megabyte and the last four of each stream are kept</span>
</div>`;

/**
 * Spans, cut at these places.
 * @param {(Span & {hit: boolean})[]} spans
 * @param {number[]} places
 */
export function folded(spans, places) {
  /** @type {(Span & {hit: boolean})[][]} */
  const parts = [[]];
  let at = 0;
  const left = [...places];
  for (const span of spans) {
    let rest = span.text;
    while (left.length && at + rest.length > left[0]) {
      const length = /** @type {number} */ (left.shift()) - at;
      if (length > 0) parts[parts.length - 1].push({ ...span, text: rest.slice(0, length) });
      rest = rest.slice(length);
      at += length;
      parts.push([]);
    }
    if (rest) parts[parts.length - 1].push({ ...span, text: rest });
    at += rest.length;
  }
  return parts;
}
