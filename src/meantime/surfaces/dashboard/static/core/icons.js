// @ts-check
/**
 * The page's own icons, 16 by 16: glyphs such as ⏱ are missing on bare systems. Each is a template without holes, which
 * is copied at once; a sprite with `<use>` would cost a shadow tree for every icon of every row.
 */
import { html, nothing } from "../vendor/lit.js";

/** @type {Record<string, unknown>} */
const ICONS = {
  // States: a disc for what is final or needs you, a ring for what is under way, a dashed ring for what is not known.
  waiting: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="7" fill="currentColor" stroke="none"/><path class="on-disc" d="M8 4.2v4.6M8 11.4v.2" stroke-width="1.8"/></svg>`,
  completed: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="7" fill="currentColor" stroke="none"/><path class="on-disc" d="m5 8.3 2.1 2.1L11 6.3" stroke-width="1.6"/></svg>`,
  failed: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="7" fill="currentColor" stroke="none"/><path class="on-disc" d="m5.7 5.7 4.6 4.6m0-4.6-4.6 4.6" stroke-width="1.6"/></svg>`,
  running: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M8 4.2a3.8 3.8 0 0 1 0 7.6z" fill="currentColor" stroke="none"/></svg>`,
  cancelling: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M5.7 5.7h4.6v4.6H5.7z" fill="currentColor" stroke="none"/></svg>`,
  cancelled: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M3.7 12.3 12.3 3.7"/></svg>`,
  timed_out: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M8 4.4V8l2.4 1.6"/></svg>`,
  queued: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25" stroke-dasharray="2.6 1.66"/></svg>`,
  silent: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25" stroke-dasharray="2.6 1.66"/><path d="M8 4.4V8l2.4 1.6"/></svg>`,
  lost: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25" stroke-dasharray="2.6 1.66"/><path d="M6.3 6.4a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.6-.8 1.2M8 11.3v.2"/></svg>`,
  // Kinds of work.
  agent: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="2.75" y="5.25" width="10.5" height="7.5" rx="2"/><path d="M8 5V2.75M6 8.2v1.2M10 8.2v1.2M1 8.5v1.5M15 8.5v1.5"/></svg>`,
  shell: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="1.75" y="2.75" width="12.5" height="10.5" rx="1.5"/><path d="m4.5 6 2 2-2 2M8 10.5h3"/></svg>`,
  mcp: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M5.5 1.75v3.5M10.5 1.75v3.5M3.75 5.25h8.5v2.25a4.25 4.25 0 0 1-8.5 0zM8 11.75v2.75"/></svg>`,
  function: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M11.5 2.6c-2-.6-3 .2-3.3 2L7 11.4c-.3 1.8-1.3 2.6-3 2M5 6.75h5.5"/></svg>`,
  // Delivery.
  unread: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="3" fill="currentColor" stroke="none"/></svg>`,
  leased: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 5.5h10L10 3M13.5 10.5h-10L6 13"/></svg>`,
  told: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m1.5 8.5 3 3 6-6.5M7.5 11l.5.5L14.5 5"/></svg>`,
  parked: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M6.4 5.7v4.6M9.6 5.7v4.6"/></svg>`,
  muted: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 6v4h2l3 2.5v-9L5 6zM11 6.5l3 3m0-3-3 3"/></svg>`,
  // The rest.
  all: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 4h12M2 8h12M2 12h12"/></svg>`,
  search: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/></svg>`,
  close: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m4 4 8 8m0-8-8 8"/></svg>`,
  pause: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M5.5 3.5v9M10.5 3.5v9" stroke-width="2"/></svg>`,
  play: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M5 3.2v9.6L12.5 8z"/></svg>`,
  bell: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 11.5h10c-1-1-1.3-2-1.3-4.6a3.7 3.7 0 0 0-7.4 0c0 2.6-.3 3.6-1.3 4.6zM6.7 14h2.6"/></svg>`,
  theme: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.25"/><path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" stroke="none"/></svg>`,
  help: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M5.6 5.6A2.4 2.4 0 1 1 9 7.9c-.8.4-1 .9-1 1.7M8 12.4v.2" stroke-width="1.7"/></svg>`,
  copy: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="5.25" y="5.25" width="8" height="8" rx="1.25"/><path d="M10.75 5V3.5c0-.7-.55-1.25-1.25-1.25h-6c-.7 0-1.25.55-1.25 1.25v6c0 .7.55 1.25 1.25 1.25H5"/></svg>`,
  conversation: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M2.25 3.25h11.5v8H7L4.25 13.5v-2.25h-2z"/></svg>`,
  batch: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="2.5" y="2.25" width="11" height="3" rx="1"/><rect x="2.5" y="6.75" width="11" height="3" rx="1"/><path d="M3.5 13.25h9"/></svg>`,
  down: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m4 6.25 4 4 4-4"/></svg>`,
  right: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m6.25 4 4 4-4 4"/></svg>`,
  left: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m9.75 4-4 4 4 4"/></svg>`,
  lock: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="3.25" y="7" width="9.5" height="6.5" rx="1.25"/><path d="M5.25 7V5a2.75 2.75 0 0 1 5.5 0v2"/></svg>`,
  stop: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="4" y="4" width="8" height="8" rx="1"/></svg>`,
  send: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M14 2 2 6.8l4.6 2 2 4.9zM6.8 8.6 14 2"/></svg>`,
  fork: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="4" cy="3.5" r="1.6"/><circle cx="12" cy="3.5" r="1.6"/><circle cx="8" cy="12.5" r="1.6"/><path d="M4 5.2c0 2.6 4 2.3 4 5.6 0-3.3 4-3 4-5.6"/></svg>`,
  again: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M13 8a5 5 0 1 1-1.5-3.6M13 2.5v2.4h-2.4"/></svg>`,
  cut: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m2 2 12 12M3 9.5a6 6 0 0 1 2-2.6M8 5.5c2 0 3.8 1.2 4.8 3M6.5 11.5c.9-.7 2.1-.7 3 0"/></svg>`,
  warning: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 2.25 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.2"/></svg>`,
  mail: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect x="1.75" y="3.25" width="12.5" height="9.5" rx="1.25"/><path d="m2.25 4.25 5.75 5 5.75-5"/></svg>`,
  check: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="m3 8.5 3.2 3.2L13 4.8"/></svg>`,
  more: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 8h.01M8 8h.01M13 8h.01" stroke-width="2.4"/></svg>`,
  shield: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1.75 13 3.5v4.2c0 3.2-2.1 5.4-5 6.6-2.9-1.2-5-3.4-5-6.6V3.5z"/></svg>`,
  trash: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M2.75 4.25h10.5M6 4V2.25h4V4M4 4.5l.6 9.25h6.8L12 4.5"/></svg>`,
  promote: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 13V3M4 7l4-4 4 4"/></svg>`,
  logo: html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16" rx="4" fill="currentColor" stroke="none"/><path class="on-disc" d="M4 5h5M6 8h6.5M4 11h4" stroke-width="2"/></svg>`,
};

/**
 * @param {string} name of ICONS; an unknown one draws nothing
 * @param {string} [label] for an icon that stands alone
 */
export function icon(name, label = "") {
  const drawn = ICONS[name] ?? nothing;
  return label ? html`<span role="img" aria-label=${label}>${drawn}</span>` : drawn;
}
