// @ts-check
/** Small pieces of markup that several views use. */
import { copy } from "./announce.js";
import { styles } from "./element.js";
import { icon } from "./icons.js";
import { html, nothing } from "../vendor/lit.js";

/** @param {string} command */
export const commandLine = (command) =>
  html`<div class="command">
    <code>${command}</code>
    <button
      type="button"
      class="icon-button"
      aria-label="Copy ${command}"
      title="Copy"
      @click=${() => copy(command, "the command")}
    >
      ${icon("copy")}
    </button>
  </div>`;

/**
 * @param {string} label
 * @param {object} how
 * @param {string} [how.icon]
 * @param {string} [how.key]
 * @param {string} [how.tone]
 * @param {string} [how.reason] why it cannot be pressed; it stays in the tab order, so that the reason can be read
 * @param {() => void} how.press
 */
export const button = (label, { icon: name, key, tone, reason, press }) =>
  html`<button
    type="button"
    class="button"
    data-tone=${tone ?? nothing}
    aria-disabled=${reason ? "true" : nothing}
    title=${reason || nothing}
    aria-description=${reason || nothing}
    @click=${press}
  >
    ${name ? icon(name) : nothing}${label}${key ? html`<kbd>${key}</kbd>` : nothing}
  </button>`;

/** @param {number} part 0 to 1 @param {string} [look] */
export const bar = (part, look = "plain") =>
  html`<span class="bar" data-look=${look}
    ><i ${styles({ width: `${(Math.min(1, Math.max(0, part)) * 100).toFixed(1)}%` })}></i
  ></span>`;

/**
 * Tabs as links, so that each has an address.
 * @param {{name: string, label: string, href: string, note?: unknown}[]} tabs
 * @param {string} open
 * @param {string} label
 */
export const tabs = (tabs, open, label) =>
  html`<nav class="tabs" aria-label=${label}>
    ${tabs.map(
      (tab) =>
        html`<a href=${tab.href} aria-current=${tab.name === open ? "page" : nothing}
          >${tab.label}${tab.note ? html`<span class="tab-note">${tab.note}</span>` : nothing}</a
        >`,
    )}
  </nav>`;
