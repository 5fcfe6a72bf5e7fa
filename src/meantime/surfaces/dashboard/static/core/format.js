// @ts-check
/** Numbers, times and durations as words. */

// Written by hand: the first Intl formatter of a browser's process loads its tables, which took 20 ms of the first rows.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sept", "Oct", "Nov", "Dec"];

/** 12,345. @param {number} value */
export const count = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");

/**
 * @param {number} value
 * @param {string} one
 * @param {string} [several]
 */
export const counted = (value, one, several = `${one}s`) => `${count(value)} ${value === 1 ? one : several}`;

/** @param {string|number|null|undefined} at @returns {number} ms; 0 if there is none */
export const ms = (at) => (typeof at === "number" ? at : at ? Date.parse(at) || 0 : 0);

/**
 * 0.9s, 41s, 1m 19s, 2h 04m, 3d 4h. Tenths are for what has ended: a clock that runs shows whole seconds.
 * @param {number} length ms
 * @param {boolean} [tenths]
 */
export function duration(length, tenths = false) {
  const seconds = Math.max(0, length) / 1_000;
  if (seconds < 59.95) return tenths ? `${seconds.toFixed(1)}s` : `${Math.floor(seconds)}s`;
  const whole = Math.round(tenths ? seconds : Math.floor(seconds));
  const [d, h, m, s] = [whole / 86_400, (whole / 3_600) % 24, (whole / 60) % 60, whole % 60].map(Math.floor);
  if (d) return `${d}d ${h}h`;
  if (h) return `${h}h ${pad(m)}m`;
  return `${m}m ${pad(s)}s`;
}

/** 4:19 or 1:02:03, for a time that runs out. @param {number} length ms */
export function countdown(length) {
  const whole = Math.max(0, Math.ceil(length / 1_000));
  const [h, m, s] = [whole / 3_600, (whole / 60) % 60, whole % 60].map(Math.floor);
  return h ? `${h}:${pad(m)}:${pad(s)}` : `${m}:${pad(s)}`;
}

/** 14:02:31, or 9 Nov, 14:02 if it was not today. @param {string|number|null|undefined} at */
export function time(at) {
  const value = new Date(ms(at));
  if (!value.getTime()) return "";
  const minutes = `${pad(value.getHours())}:${pad(value.getMinutes())}`;
  if (value.toDateString() === new Date().toDateString()) return `${minutes}:${pad(value.getSeconds())}`;
  return `${value.getDate()} ${MONTHS[value.getMonth()]}, ${minutes}`;
}

/** 1st, 2nd, 3rd, 4th. @param {number} place */
export function ordinal(place) {
  const tail = place % 100 > 10 && place % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place}${tail}`;
}

/** @param {number} part @param {number} whole */
export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "—");

/** @param {string} text @param {number} longest characters */
export const cut = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);

/** @param {number} size bytes */
export function bytes(size) {
  if (size < 1_000) return `${size} B`;
  const power = Math.min(3, Math.floor(Math.log10(size) / 3));
  return `${(size / 1_000 ** power).toFixed(1)} ${["B", "kB", "MB", "GB"][power]}`;
}

/** @param {number} value */
const pad = (value) => String(value).padStart(2, "0");
