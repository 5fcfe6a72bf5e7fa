// @ts-check
/** One conversation: its inbox as a line of notices, its tasks, and what its agent is told with every turn. */
import { copy, say, sayError } from "../core/announce.js";
import { get, path } from "../core/api.js";
import { notifies, toggleNotify } from "../core/attention.js";
import { now, onTick } from "../core/clock.js";
import { PageElement } from "../core/element.js";
import { count, counted, duration, ms } from "../core/format.js";
import { icon } from "../core/icons.js";
import { button, tabs } from "../core/parts.js";
import { address, go } from "../core/router.js";
import { print, term } from "../core/search-query.js";
import { store } from "../core/store.js";
import { deliverAgain, obstacle } from "../task/actions.js";
import { html, nothing } from "../vendor/lit.js";
import { hasTask, inboxLine } from "./inbox-line.js";
import { threadInspector } from "./thread-inspector.js";
import "../list/rail.js";

/** @typedef {import("../core/types.js").Notice} Notice */

const PAGE = 100; // notices
const REST = 500; // ms between two looks
const STATES = ["unread", "leased", "told", "parked", "muted"];

class ThreadPage extends PageElement {
  static properties = {
    thread: {},
    tab: {},
    data: { state: true },
    notices: { state: true },
    cursor: { state: true },
    error: { state: true },
    shown: { state: true },
  };

  constructor() {
    super();
    this.thread = "";
    this.tab = "";
    this.view = "thread";
    this.shown = ""; // a state, or all
    this.cursor = "";
    this.error = "";
    this.timer = 0;
    /** @type {any} */
    this.data = null;
    /** @type {Notice[]} oldest first */
    this.notices = [];
    /** @type {Record<string, number>} */
    this.counts = {};
    /** @type {number|string|null} where earlier notices begin */
    this.earlier = null;
  }

  listen() {
    const isOurs = (/** @type {string} */ id) => store.rows.get(id)?.thread === this.thread;
    return [
      store.subscribe((changed) => [...changed].some(isOurs) && this.lookSoon()),
      onTick(() => this.requestUpdate()),
      () => clearTimeout(this.timer),
    ];
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has("thread")) return;
    this.data = null;
    this.notices = [];
    this.earlier = null;
    this.error = "";
    this.look();
  }

  lookSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), REST);
  }

  async look() {
    const thread = this.thread;
    try {
      const asked = [get(path`/v1/threads/${thread}`), get(path`/v1/threads/${thread}/inbox`, { limit: PAGE })];
      const [data, inbox] = await Promise.all(asked);
      if (thread !== this.thread) return;
      const fresh = inOrder(inbox.notices);
      const older = this.notices.filter((notice) => notice.number < (fresh[0]?.number ?? Infinity));
      this.data = data;
      this.counts = inbox.counts ?? {};
      if (!older.length) this.earlier = inbox.before ?? null;
      this.notices = [...older, ...fresh];
    } catch (error) {
      if (!this.data) this.error = error instanceof Error ? error.message : String(error);
    }
  }

  async lookFurther() {
    try {
      const inbox = await get(path`/v1/threads/${this.thread}/inbox`, { limit: PAGE, before: this.earlier ?? undefined });
      this.earlier = inbox.before ?? null;
      this.notices = [...inOrder(inbox.notices), ...this.notices];
    } catch (error) {
      sayError(error);
    }
  }

  /** @param {string} name one of keys.js @returns {boolean} whether it is known here */
  command(name) {
    if (name === "next" || name === "previous") this.move(name === "next" ? 1 : -1);
    else if (name === "open") this.current && hasTask(this.current) && go({ task: this.current.task });
    else if (name === "deliver") this.deliver(this.current?.state === "parked" ? [this.current] : this.parked);
    else if (name === "notify") toggleNotify(this.thread).then((text) => (say(text), this.requestUpdate()));
    else if (name === "copy") copy(this.thread, "the id");
    else if (name === "escape") go({});
    else return false;
    return true;
  }

  /** @returns {Notice|undefined} */
  get current() {
    return this.notices.find((notice) => notice.id === this.cursor);
  }

  get parked() {
    return this.notices.filter((notice) => notice.state === "parked");
  }

  get listed() {
    return this.shown ? this.notices.filter((notice) => notice.state === this.shown) : this.notices;
  }

  /** @param {number} by */
  move(by) {
    const all = this.listed;
    const at = all.findIndex((notice) => notice.id === this.cursor);
    const first = by > 0 ? 0 : all.length - 1;
    this.cursor = all[at < 0 ? first : Math.max(0, Math.min(all.length - 1, at + by))]?.id ?? "";
    this.updateComplete.then(() => this.querySelector(".notice[data-current]")?.scrollIntoView({ block: "nearest" }));
  }

  /** @param {Notice[]} notices */
  async deliver(notices) {
    const why = obstacle() || (notices.length ? "" : "Nothing is parked here.");
    if (why) return sayError(why);
    try {
      say(
        await deliverAgain(
          this.thread,
          notices.map((notice) => notice.id),
        ),
      );
      this.look();
    } catch (error) {
      sayError(error);
    }
  }

  headView() {
    const { turn } = this.data;
    const states = STATES.filter((state) => this.counts[state]);
    const open = html`<span class="state" data-state="running">${icon("running")}In turn ${turn?.number ?? ""}</span>
      ${turn?.since ? html`<span>${duration(now() - ms(turn.since))}</span>` : nothing}`;
    return html`<header class="task-head">
      <div class="task-title">
        <h1 dir="auto">${this.thread}</h1>
        <div class="task-actions">
          ${button(notifies(this.thread) ? "Notifying you" : "Notify me", { icon: "bell", key: "b", press: () => this.command("notify") })}
          ${button("Copy id", { icon: "copy", key: "y", press: () => this.command("copy") })}
        </div>
      </div>
      <p class="task-meta">
        ${turn ? open : html`<span>no turn is open</span>`}
        <span>${counted(states.reduce((sum, state) => sum + this.counts[state], 0), "notice")}</span>
        ${states.map((state) => html`<span class="delivery" data-state=${state}>${icon(state)}${count(this.counts[state])} ${state}</span>`)}
      </p>
    </header>`;
  }

  tabsView() {
    const list = [
      { name: "inbox", label: "Inbox", href: address({ thread: this.thread }) },
      { name: "tasks", label: "Tasks", href: address({ q: print([term("thread", this.thread)]) }) },
      { name: "raw", label: "Raw", href: address({ thread: this.thread, tab: "raw" }) },
    ];
    const onShow = (/** @type {Event} */ event) => (this.shown = /** @type {HTMLSelectElement} */ (event.target).value);
    return html`<div class="thread-tabs">
      ${tabs(list, this.tab === "raw" ? "raw" : "inbox", "Views of this conversation")}
      <label class="second"
        >Show
        <select class="button" @change=${onShow}>
          <option value="">all states</option>
          ${STATES.map((state) => html`<option value=${state}>${state}</option>`)}
        </select></label
      >
    </div>`;
  }

  body() {
    if (this.tab === "raw")
      return html`<div class="overview">
        <pre class="text" tabindex="0">${JSON.stringify({ ...this.data, notices: this.notices }, null, 2)}</pre>
      </div>`;
    return inboxLine(this.listed, {
      turn: this.data.turn,
      cursor: this.cursor,
      older: this.earlier !== null,
      onOlder: () => this.lookFurther(),
      onDeliver: (notice) => this.deliver([notice]),
      onCursor: (id) => (this.cursor = id),
    });
  }

  render() {
    const note = this.error
      ? html`<h1>No such conversation here</h1>
          <p class="second">${this.error}</p>`
      : html`<p class="quiet" role="status">Looking for ${this.thread} …</p>`;
    return html`<div class="with-rail thread">
      <mt-rail></mt-rail>
      ${
        this.data
          ? html`<main id="page" class="thread-main" tabindex="-1">${this.headView()}${this.tabsView()}${this.body()}</main>
              ${threadInspector(this.thread, this.data)}`
          : html`<main id="page" class="page-note" tabindex="-1">${note}</main>`
      }
    </div>`;
  }
}

/** @param {Notice[]} notices */
const inOrder = (notices) => [...notices].sort((a, b) => a.number - b.number);

customElements.define("mt-thread-page", ThreadPage);
