// @ts-check
/**
 * Terminal text as spans. Output is hostile: everything that is not a colour or a link is dropped, control characters
 * are shown by their code points, and a link keeps its target only if it is http or https.
 */

/**
 * @typedef {object} Style
 * @property {number} fg 0–15, or -1 for the page's own
 * @property {number} bg
 * @property {boolean} bold
 * @property {boolean} dim
 * @property {boolean} italic
 * @property {boolean} underline
 * @property {boolean} inverse
 * @property {string} link
 *
 * @typedef {{text: string, names: string, link: string}} Span `names` are classes
 */

/** @type {Style} */
export const PLAIN = Object.freeze({ fg: -1, bg: -1, bold: false, dim: false, italic: false, underline: false, inverse: false, link: "" });

// CSI (a line that is not whole may end within it), OSC (ended by BEL or ST), a string sequence, or a lone escape with its character.
const ESCAPE = /\x1b(?:\[([0-9;:?<=>!]*)[ -/]*(?:([@-~])|$)|\]([^\x07\x1b]*)(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -~])?/g;
// C0 and C1 without tab, the characters that turn the direction of text around, and those that are not seen.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** @param {string} text */
const visible = (text) => text.replace(HIDDEN, (found) => `‹${found.codePointAt(0)?.toString(16).toUpperCase().padStart(2, "0")}›`);

/**
 * What a terminal would show of a line that returns to its begin: the last text that was written over it.
 * @param {string} line without its newline
 */
export function overwritten(line) {
  if (!line.includes("\r")) return line;
  const parts = line.split("\r").filter((part) => part !== "");
  return parts.at(-1) ?? "";
}

/**
 * @param {string} line
 * @param {Style} style that the line begins with
 * @returns {{spans: Span[], style: Style}} with the style that the next line begins with
 */
export function spansOf(line, style) {
  if (!line.includes("\x1b")) return { spans: line ? [span(line, style)] : [], style };
  /** @type {Span[]} */
  const spans = [];
  let from = 0;
  for (const found of line.matchAll(ESCAPE)) {
    if (found.index > from) spans.push(span(line.slice(from, found.index), style));
    from = found.index + found[0].length;
    style = after(found, style);
  }
  if (from < line.length) spans.push(span(line.slice(from), style));
  return { spans, style };
}

/** A line without its colours, as search and copying want it. @param {string} line */
export const plain = (line) => visible(line.includes("\x1b") ? line.replace(ESCAPE, "") : line);

/** @param {RegExpMatchArray} found @param {Style} style */
function after(found, style) {
  if (found[2] === "m") return graphics(found[1], style);
  if (found[3]?.startsWith("8;")) return { ...style, link: target(found[3].slice(found[3].indexOf(";", 2) + 1)) };
  return style;
}

/** @param {string} given */
function target(given) {
  try {
    const url = new URL(given);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : "";
  } catch {
    return "";
  }
}

const FLAGS = /** @type {Record<number, Partial<Style>>} */ ({
  1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { underline: true }, 7: { inverse: true },
  22: { bold: false, dim: false }, 23: { italic: false }, 24: { underline: false }, 27: { inverse: false },
  39: { fg: -1 }, 49: { bg: -1 },
});

/** @param {string} codes @param {Style} style */
function graphics(codes, style) {
  const given = codes.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let at = 0; at < given.length; at++) {
    const code = given[at] || 0;
    if (code === 0) next = { ...PLAIN, link: next.link };
    else if (FLAGS[code]) Object.assign(next, FLAGS[code]);
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(given, at + 1);
      next[code === 38 ? "fg" : "bg"] = color;
      at += used;
    }
  }
  return next;
}

/**
 * 5;n or 2;r;g;b. They become the nearest of sixteen colours, whose contrast is right in both themes.
 * @param {number[]} given @param {number} at
 * @returns {[number, number]} the colour, and how many numbers it took
 */
function extended(given, at) {
  if (given[at] === 2) return [nearest(given[at + 1] || 0, given[at + 2] || 0, given[at + 3] || 0), 4];
  const n = given[at + 1] || 0;
  if (n < 16) return [n, 2];
  if (n >= 232) return [nearest(8 + 10 * (n - 232), 8 + 10 * (n - 232), 8 + 10 * (n - 232)), 2];
  const [r, g, b] = [Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6];
  return [nearest(r * 51, g * 51, b * 51), 2];
}

/** @param {number} r @param {number} g @param {number} b @returns {number} 0–15 */
function nearest(r, g, b) {
  const most = Math.max(r, g, b);
  if (most < 48) return 0;
  if (most - Math.min(r, g, b) < 32) return most > 200 ? 15 : most > 120 ? 7 : 8;
  const half = most / 2;
  return (r > half ? 1 : 0) + (g > half ? 2 : 0) + (b > half ? 4 : 0) + (most > 170 ? 8 : 0);
}

/** @param {string} text @param {Style} style @returns {Span} */
function span(text, style) {
  const names = [];
  const [fg, bg] = style.inverse ? [style.bg < 0 ? "page" : style.bg, style.fg < 0 ? "ink" : style.fg] : [style.fg, style.bg];
  if (fg !== -1) names.push(`ansi-${fg}`);
  if (bg !== -1) names.push(`ansi-on-${bg}`);
  for (const flag of /** @type {const} */ (["bold", "dim", "italic", "underline"])) if (style[flag]) names.push(`ansi-${flag}`);
  return { text: visible(text), names: names.join(" "), link: style.link };
}
