// @ts-check
/** One dialog at a time: a question to the person at the page, and what they said. */
import { PageElement } from "./element.js";
import { commandLine } from "./parts.js";
import { html, nothing } from "../vendor/lit.js";

/**
 * @typedef {object} Ask
 * @property {string} title
 * @property {unknown} [text] words or markup below the title
 * @property {{name: string, label: string, required?: boolean, lines?: number}[]} [fields]
 * @property {string} [confirm] the word on the button; without it there is nothing to decide
 * @property {boolean} [destroys]
 * @property {string} [cli] the command that does the same
 */

class PageDialog extends PageElement {
  static properties = { asked: { state: true } };

  constructor() {
    super();
    /** @type {Ask|null} */
    this.asked = null;
    /** @type {(values: Record<string, string>|null) => void} */
    this.done = () => {};
  }

  /** @param {Ask} asked @returns {Promise<Record<string, string>|null>} the fields, or null for "no" */
  async ask(asked) {
    this.done(null);
    this.asked = asked;
    await this.updateComplete;
    const dialog = /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("textarea")?.focus();
    return new Promise((resolve) => (this.done = resolve));
  }

  /** @param {Record<string, string>|null} values */
  finish(values) {
    this.done(values);
    this.done = () => {};
    const focused = document.activeElement;
    if (focused instanceof HTMLElement && this.contains(focused)) focused.blur(); // otherwise it has the next key, until it is drawn
    this.querySelector("dialog")?.close();
    this.asked = null;
  }

  confirm() {
    const form = /** @type {HTMLFormElement} */ (this.querySelector("form"));
    if (!form.reportValidity()) return;
    const values = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    this.finish(Object.fromEntries(values));
  }

  /** It comes a moment after the dialog was closed: by then the next one may be open. @param {Event} event */
  onClose(event) {
    if (this.asked && !(/** @type {HTMLDialogElement} */ (event.target).open)) this.finish(null);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    event.stopPropagation(); // the keys of the page behind it rest
    if (event.key === "Escape" && !event.isComposing) {
      event.preventDefault(); // the browser itself would tell us of it later
      this.finish(null);
    } else if (event.key === "Enter" && event.ctrlKey && this.asked?.confirm) this.confirm();
  }

  render() {
    const asked = this.asked;
    return html`<dialog aria-labelledby="dialog-title" @keydown=${this.onKey} @close=${this.onClose}>
      ${
        asked
          ? html`<form class="dialog-body" @submit=${(/** @type {Event} */ event) => (event.preventDefault(), this.confirm())}>
              <h2 id="dialog-title" dir="auto">${asked.title}</h2>
              ${asked.text ? html`<div class="second">${asked.text}</div>` : nothing}
              ${(asked.fields ?? []).map(
                (field) =>
                  html`<label class="field"
                    >${field.label}<textarea name=${field.name} rows=${field.lines ?? 3} ?required=${field.required}></textarea>
                  </label>`,
              )}
              ${asked.cli ? commandLine(asked.cli) : nothing}
              <div class="dialog-buttons">
                ${asked.confirm ? html`<button class="button" data-tone=${asked.destroys ? "bad" : "primary"}>${asked.confirm}<kbd>Ctrl ↵</kbd></button>` : nothing}
                <button type="button" class="button" @click=${() => this.finish(null)}>
                  ${asked.confirm ? "Not now" : "Close"}<kbd>esc</kbd>
                </button>
              </div>
            </form>`
          : nothing
      }
    </dialog>`;
  }
}

customElements.define("mt-dialog", PageDialog);
const shown = /** @type {PageDialog} */ (document.createElement("mt-dialog"));
document.body.append(shown);

/** @param {Ask} asked */
export const ask = (asked) => shown.ask(asked);
