// @ts-check
/** The conversation of an agent: what it was asked, said and thought; its calls are folded, with their results. */
import { get, path } from "../core/api.js";
import { onTick } from "../core/clock.js";
import { PageElement } from "../core/element.js";
import { counted, cut, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { store } from "../core/store.js";
import { html, nothing, repeat } from "../vendor/lit.js";

/**
 * @typedef {object} AgentMessage
 * @property {string} id
 * @property {string} role user, assistant, system or tool
 * @property {string} kind text, thought, call or summary
 * @property {string} text
 * @property {string} [name] of a tool
 * @property {string} [detail] the key argument of a call
 * @property {any} [arguments]
 * @property {string|null} [result] of a call, when it has ended
 * @property {boolean} [error]
 * @property {boolean} [truncated] the text is cut
 * @property {string|null} at
 * @property {number} run
 */

const PAGE = 200; // messages of one request
const MOST = 5_000; // that the page holds
const LEAST_PAUSE = 1_000; // ms between two requests
const WORDS = /** @type {Record<string, string>} */ ({ user: "Asked", assistant: "Agent", system: "System", tool: "Tool" });

export class MessagesView extends PageElement {
  static properties = { task: { attribute: false }, messages: { state: true }, trouble: { state: true }, thoughts: { state: true } };

  constructor() {
    super();
    this.task = "";
    /** @type {AgentMessage[]} */
    this.messages = [];
    this.trouble = "";
    this.thoughts = false;
    /** @type {string|number|undefined} */
    this.next = undefined;
    this.loaded = false;
    this.asking = false;
    this.askedAt = 0;
    /** @type {unknown} */
    this.seen = null;
  }

  listen() {
    const look = () => void this.refresh();
    return [store.subscribe(look), onTick(look)];
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has("task")) return;
    [this.messages, this.next, this.loaded, this.seen, this.askedAt] = [[], undefined, false, null, 0];
    void this.refresh();
  }

  /** Asks for what came since, if the task has changed. */
  async refresh() {
    const row = store.rows.get(this.task);
    if (!this.task || this.asking || Date.now() - this.askedAt < LEAST_PAUSE) return;
    if (this.loaded && row === this.seen) return;
    this.asking = true;
    const task = this.task;
    try {
      const page = await get(path`/v1/tasks/${task}/messages`, { after: this.next, limit: PAGE });
      if (task !== this.task) return;
      this.take(page.messages);
      this.next = page.next ?? this.next;
      this.loaded = page.messages.length < PAGE;
      if (this.loaded) this.seen = row;
      else this.askedAt = 0;
      this.trouble = "";
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
      this.askedAt = Date.now();
    } finally {
      this.asking = false;
      if (this.loaded) this.askedAt = Date.now();
    }
    if (!this.loaded && !this.trouble) void this.refresh();
  }

  /** A call that was open comes again with its result. @param {AgentMessage[]} fresh */
  take(fresh) {
    const known = new Map(this.messages.map((message) => [message.id, message]));
    for (const message of fresh) known.set(message.id, message);
    this.messages = [...known.values()].slice(-MOST);
  }

  /** @param {AgentMessage} message */
  callView(message) {
    const state = message.error ? "failed" : message.result == null ? "running" : "completed";
    const word = message.error ? "failed" : message.result == null ? "running" : "done";
    const given = message.arguments === undefined ? "" : JSON.stringify(message.arguments, null, 2);
    return html`<details class="msg-call" data-state=${state}>
      <summary>${icon(state)}<b>${message.name ?? "call"}</b><code>${cut(message.detail ?? message.text, 200)}</code><span class="quiet">${word}</span></summary>
      ${given ? html`<h4>Arguments</h4><pre>${given}</pre>` : nothing}
      ${message.result == null ? nothing : html`<h4>Result</h4><pre>${message.result}</pre>`}
    </details>`;
  }

  /** @param {AgentMessage} message */
  messageView(message) {
    if (message.kind === "thought" && !this.thoughts) return nothing;
    const body = message.kind === "call" ? this.callView(message) : html`<pre class="msg-text">${message.text}</pre>`;
    return html`<article class="msg" data-role=${message.role} data-kind=${message.kind}>
      <header><b>${message.kind === "thought" ? "Thought" : (WORDS[message.role] ?? message.role)}</b><span class="quiet">run ${message.run}</span><time class="quiet">${time(message.at)}</time></header>
      ${body}${message.truncated ? html`<p class="quiet">This text is cut. <code>meantime logs</code> prints all of it.</p>` : nothing}
    </article>`;
  }

  render() {
    const thoughts = this.messages.filter((message) => message.kind === "thought").length;
    return html`<div class="tl-tools"><span class="quiet">${counted(this.messages.length, "message")}</span>
        ${thoughts ? html`<label><input type="checkbox" .checked=${this.thoughts} @change=${() => (this.thoughts = !this.thoughts)} /> show ${counted(thoughts, "thought")}</label>` : nothing}</div>
      ${this.trouble ? html`<p class="log-trouble" role="status">${icon("warning")}${this.trouble}</p>` : nothing}
      <div class="msg-scroll" tabindex="0" role="region" aria-label="Messages">
        ${repeat(this.messages, (message) => message.id, (message) => this.messageView(message))}
        ${this.messages.length || this.trouble ? nothing : html`<p class="quiet tl-none">${this.loaded ? "There is no conversation: only agents have messages." : "Loading the messages…"}</p>`}
      </div>`;
  }
}

customElements.define("mt-messages", MessagesView);
