// @ts-check
/** Sentences for people: shown for a while at the bottom of the page, and read out by screen readers. */
import { PageElement } from "./element.js";
import { html, repeat } from "../vendor/lit.js";

const SHOWN = 6_000; // ms
const MOST = 3;

/** @typedef {{id: number, text: string, tone: "plain"|"bad"}} Message */

class Messages extends PageElement {
  static properties = { messages: { state: true } };

  constructor() {
    super();
    /** @type {Message[]} */
    this.messages = [];
    this.last = 0;
  }

  /** @param {string} text @param {"plain"|"bad"} tone */
  show(text, tone) {
    const id = ++this.last;
    this.messages = [...this.messages, { id, text, tone }].slice(-MOST);
    setTimeout(() => (this.messages = this.messages.filter((each) => each.id !== id)), SHOWN);
  }

  render() {
    return html`<div class="messages" role="status" aria-live="polite">
      ${repeat(
        this.messages,
        (each) => each.id,
        (each) => html`<p class="message" data-tone=${each.tone}>${each.text}</p>`,
      )}
    </div>`;
  }
}

customElements.define("mt-messages-shown", Messages);
const shown = /** @type {Messages} */ (document.createElement("mt-messages-shown"));
document.body.append(shown);

/** @param {string} text */
export const say = (text) => shown.show(text, "plain");

/** @param {unknown} error */
export const sayError = (error) => shown.show(error instanceof Error ? error.message : String(error), "bad");

/** @param {string} text @param {string} name what was copied */
export async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${name}.`);
  } catch {
    sayError(`The browser does not let this page copy. Copy it by hand: ${text}`);
  }
}
