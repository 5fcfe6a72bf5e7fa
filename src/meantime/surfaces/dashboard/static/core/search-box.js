// @ts-check
/** The search: qualifiers as chips, words as text, and completion by the daemon. */
import { get } from "./api.js";
import { PageElement } from "./element.js";
import { icon } from "./icons.js";
import { go, onPlace, place } from "./router.js";
import { QUALIFIERS, parse, print } from "./search-query.js";
import { html, live, nothing } from "../vendor/lit.js";

/** @typedef {{text: string, label: string, kind: string}} Item */
/** @typedef {import("./search-query.js").Term} Term */

const AFTER_TYPING = 200; // ms after the last letter

class SearchBox extends PageElement {
  static properties = { chips: { state: true }, text: { state: true }, items: { state: true }, at: { state: true } };

  constructor() {
    super();
    /** @type {Term[]} */
    this.chips = [];
    this.text = "";
    /** @type {Item[]} */
    this.items = [];
    this.at = -1;
    this.timer = 0;
    this.asked = 0;
    this.read();
  }

  listen() {
    return [onPlace(() => this.read())];
  }

  /** Shows what the address says, unless the person is ahead of it. */
  read() {
    if (this.query === place.q) return;
    const terms = parse(place.q);
    this.chips = terms.filter((term) => term.name);
    this.text = print(terms.filter((term) => !term.name));
  }

  get query() {
    return [print(this.chips), this.text.trim()].filter(Boolean).join(" ");
  }

  /** @returns {HTMLInputElement|null} */
  get input() {
    return this.querySelector("input");
  }

  focus() {
    this.input?.focus();
    this.input?.select();
  }

  apply() {
    go({ q: this.query }, true);
  }

  /** @param {Event} event */
  onInput(event) {
    this.text = /** @type {HTMLInputElement} */ (event.target).value;
    const terms = parse(this.text);
    // A qualifier becomes a chip with the space after it.
    if (/\s$/.test(this.text) && terms.some((term) => term.name)) {
      this.chips = [...this.chips, ...terms.filter((term) => term.name)];
      const rest = print(terms.filter((term) => !term.name));
      this.text = rest && `${rest} `;
    }
    // What is shown until the daemon has answered fits what was typed: Enter must not take another qualifier.
    this.show(this.items.filter((item) => item.text.startsWith(this.lastWord)));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.isComplete() && this.apply(), this.complete()), AFTER_TYPING);
  }

  /** A qualifier that is still being written is not searched for: the daemon would refuse half a word. */
  isComplete() {
    const name = this.lastWord.replace(/^-/, "").toLowerCase();
    return !name.includes(":") && !(name && QUALIFIERS.some((each) => each.startsWith(name)));
  }

  get lastWord() {
    return /\S*$/.exec(this.text)?.[0] ?? "";
  }

  async complete() {
    const asked = ++this.asked;
    const q = this.lastWord;
    let found = QUALIFIERS.map((name) => ({ text: `${name}:`, label: "", kind: "qualifier" }));
    try {
      if (q) found = (await get("/v1/complete", { q })).items;
    } catch {
      found = []; // completion is a help; the search works without it
    }
    if (asked !== this.asked || q !== this.lastWord || document.activeElement !== this.input) return;
    this.show(found.slice(0, 12));
  }

  /** The item that is selected stays so, if it is still there.
   * @param {Item[]} items */
  show(items) {
    const selected = this.items[this.at]?.text;
    this.items = items;
    this.at = items.findIndex((item) => item.text === selected);
  }

  /** @param {Item} item */
  take(item) {
    this.text = this.text.slice(0, this.text.length - this.lastWord.length) + item.text;
    this.show([]);
    if (item.text.endsWith(":")) this.complete();
    else {
      const terms = parse(this.text);
      this.chips = [...this.chips, ...terms.filter((term) => term.name)];
      this.text = print(terms.filter((term) => !term.name));
      this.apply();
    }
    this.input?.focus();
  }

  /** @param {number} index */
  drop(index) {
    this.chips = this.chips.filter((_, i) => i !== index);
    this.apply();
    this.input?.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.items.length) {
      event.preventDefault();
      this.at = (this.at + step + this.items.length + (this.at < 0 && step < 0 ? 1 : 0)) % this.items.length;
    } else if ((event.key === "Enter" || event.key === "Tab") && this.at >= 0) {
      event.preventDefault();
      this.take(this.items[this.at]);
    } else if (event.key === "Enter") {
      const terms = parse(this.text);
      this.chips = [...this.chips, ...terms.filter((term) => term.name)];
      this.text = print(terms.filter((term) => !term.name));
      this.show([]);
      this.apply();
      this.dispatchEvent(new CustomEvent("searched", { bubbles: true }));
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.items.length) this.show([]);
      else this.input?.blur();
    } else if (event.key === "Backspace" && !this.text && this.chips.length) this.drop(this.chips.length - 1);
  }

  onBlur() {
    // After the click on an item, which takes the focus for a moment.
    setTimeout(() => this.contains(document.activeElement) || this.show([]), 150);
  }

  render() {
    return html`<div class="search" role="search" @click=${() => this.input?.focus()}>
      ${icon("search")}
      ${this.chips.map(
        (chip, index) =>
          html`<span class="chip"
            ><span class="quiet">${chip.not ? "-" : ""}${chip.name}:</span>${chip.values.join(",")}<button
              class="chip-drop"
              aria-label="Remove ${chip.text}"
              @click=${(/** @type {Event} */ event) => (event.stopPropagation(), this.drop(index))}
            >
              ${icon("close")}
            </button></span
          >`,
      )}
      <input
        type="text"
        role="combobox"
        spellcheck="false"
        autocomplete="off"
        maxlength="1000"
        aria-label="Search or filter tasks"
        aria-expanded=${this.items.length > 0}
        aria-controls="completions"
        aria-activedescendant=${this.at >= 0 ? `completion-${this.at}` : nothing}
        placeholder="Search or filter: status: kind: agent: thread: batch:"
        .value=${live(this.text)}
        @input=${this.onInput}
        @focus=${() => this.complete()}
        @blur=${this.onBlur}
        @keydown=${this.onKey}
      />
      <kbd>/</kbd>
      <ul id="completions" class="completions" role="listbox" aria-label="Completions" ?hidden=${!this.items.length}>
        ${this.items.map(
          (item, index) =>
            html`<li
              id="completion-${index}"
              role="option"
              aria-selected=${index === this.at}
              @mousedown=${(/** @type {Event} */ event) => event.preventDefault()}
              @click=${() => this.take(item)}
            >
              <span class="mono">${item.text}</span><span class="quiet">${item.kind}</span>
            </li>`,
        )}
      </ul>
    </div>`;
  }
}

customElements.define("mt-search", SearchBox);
