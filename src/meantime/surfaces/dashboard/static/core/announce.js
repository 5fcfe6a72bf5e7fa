// @ts-check
/** Sentences for people: shown for a while at the bottom of the page, and read out by screen readers. Questions to them. */
import { whenIdle } from "./clock.js";
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
/** @type {Messages|null} */
let made = null;

function shown() {
  if (!made) document.body.append((made = /** @type {Messages} */ (document.createElement("mt-messages-shown"))));
  return made;
}
whenIdle(shown); // screen readers tell of a region that was there before its text

/** @param {string} text */
export const say = (text) => shown().show(text, "plain");

/** @param {unknown} error */
export const sayError = (error) => shown().show(error instanceof Error ? error.message : String(error), "bad");

/**
 * Asks the person at the page. The dialog is loaded after the first rows.
 * @param {import("./dialog.js").Ask} asked
 * @returns {Promise<Record<string, string>|null>} the fields, or null for "no"
 */
export const ask = (asked) => (dialog ? dialog.ask(asked) : loadDialog().then((loaded) => loaded.ask(asked)));

/** @type {typeof import("./dialog.js")|null} held, so that a dialog is there before the next key is pressed */
let dialog = null;

export const loadDialog = async () => (dialog ??= await import("./dialog.js"));

/** @param {string} text @param {string} name what was copied */
export async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${name}.`);
  } catch {
    sayError(`The browser does not let this page copy. Copy it by hand: ${text}`);
  }
}
