// @ts-check
/** The page: gets its right to ask, opens the stream, and shows the view that the address names. */
import { access } from "./core/access.js";
import { ask, loadDialog, say, sayError } from "./core/announce.js";
import { toggleNotify, watchAttention } from "./core/attention.js";
import { stopAt, whenIdle } from "./core/clock.js";
import { PageElement } from "./core/element.js";
import { fragment, opening, stream } from "./core/entry.js";
import { MAPS, commandOf, keyName } from "./core/keys.js";
import { commandLine } from "./core/parts.js";
import { go, goTo, onPlace, place } from "./core/router.js";
import { store } from "./core/store.js";
import { applyTheme, nextTheme } from "./core/theme.js";
import { html } from "./vendor/lit.js";
import "./core/footer.js";
import "./core/top-bar.js";
import { loadExtras } from "./list/list-page.js";
import "./list/rail.js";

// The list loads at once, the rest when the page is live or one of them is open: a daemon that is away serves no files.
const REST = [
  loadDialog,
  loadExtras,
  () => import("./task/task-page.js"),
  () => import("./thread/thread-page.js"),
  () => import("./task/answer-page.js"),
  () => import("./log/log-view.js"),
  () => import("./timeline/timeline-view.js"),
  () => import("./messages/messages-view.js"),
  () => import("./workers/workers-page.js"),
];

/** @returns {Promise<boolean>} whether all of them are there */
const loadRest = async () => (await Promise.allSettled(REST.map((view) => view()))).every((one) => one.status === "fulfilled");

const TRIES = 5; // to load them, until the page is live the next time
const PAUSE = 1_000; // ms before the second try; twice as long before each further one
const PATIENCE = 1_000; // ms: a page that has its rows by then is laid out once, with them

class App extends PageElement {
  static properties = { refused: { state: true }, opened: { state: true }, isLate: { state: true } };

  constructor() {
    super();
    this.refused = "";
    this.opened = false;
    this.isLate = false;
  }

  listen() {
    this.start();
    const onKey = (/** @type {KeyboardEvent} */ event) => this.onKey(event);
    addEventListener("keydown", onKey);
    setTimeout(() => (this.isLate = true), PATIENCE);
    return [
      onPlace(() => this.requestUpdate()),
      store.subscribeTo(() => [store.status], () => this.onStatus()),
      store.subscribeTo(() => [store.status, store.isPaused, this.view], () => this.requestUpdate()),
      () => removeEventListener("keydown", onKey),
    ];
  }

  async start() {
    try {
      await opening;
    } catch (error) {
      this.refused = error instanceof Error ? error.message : String(error);
      return;
    }
    goTo(fragment.go);
    if (access.question) go({ answer: access.question }, true);
    this.opened = true;
    if (place.task || place.thread || place.answer || place.workers) this.loadViews();
    watchAttention(() => stream?.leads ?? false);
  }

  /** Whether there is something to draw. A page with its rows is laid out once, and not first without them. */
  get ready() {
    return this.opened && (this.isLate || store.overview !== null || store.status.state === "disconnected");
  }

  onStatus() {
    if (store.status.state === "live") whenIdle(() => this.loadViews());
    this.setClock();
  }

  /** A request may fail while the page is live: a busy daemon closes connections. @param {number} tried */
  async loadViews(tried = 1) {
    const isWhole = await loadRest();
    this.requestUpdate();
    if (!isWhole && tried < TRIES && store.status.state === "live") setTimeout(() => this.loadViews(tried + 1), PAUSE * 2 ** (tried - 1));
  }

  setClock() {
    const { state, since } = store.status;
    if (state === "disconnected" || state === "refused") stopAt(since);
    else stopAt(store.isPaused ? this.pausedAt : 0);
  }

  pausedAt = 0;

  /** The keys that hold now. */
  get view() {
    return /** @type {any} */ (this.querySelector("[data-page]"))?.view ?? "list";
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.defaultPrevented || !this.ready || document.querySelector("dialog[open]")) return;
    const name = commandOf(event, this.view);
    if (name && this.command(name)) event.preventDefault();
  }

  /** @param {string} name one of keys.js @returns {boolean} whether it was done */
  command(name) {
    const page = /** @type {any} */ (this.querySelector("[data-page]"));
    if (page?.command?.(name)) return true;
    if (name === "search") this.search();
    else if (name === "pause") this.pause();
    else if (name === "help") this.help();
    else if (name === "theme") {
      say(`Theme: ${nextTheme()}.`);
      store.changed(); // its button says which one it is
    } else if (name === "retry") stream?.retry();
    else if (name === "list" || name === "escape") go({});
    else if (name === "needs") go({ answer: "next" });
    else if (name === "workers") go({ workers: "all" });
    else if (name === "notifications") toggleNotify(place.thread || undefined).then(say);
    else return false;
    return true;
  }

  search() {
    document.documentElement.dataset.search = "open"; // narrow screens show the search only then
    /** @type {any} */ (this.querySelector("mt-search"))?.focus();
  }

  pause() {
    if (store.isPaused) store.resume();
    else {
      this.pausedAt = Date.now();
      store.pause();
    }
    this.setClock();
    say(store.isPaused ? "Paused. Tasks go on; the page stands still." : "The page goes on.");
  }

  help() {
    const keys = [...new Map((MAPS[this.view] ?? []).map((key) => [key.press, key])).values()];
    const text = html`<dl class="keys-help">
      ${keys
        .filter((key) => key.help || key.label)
        .map(
          (key) =>
            html`<div>
              <dt><kbd>${keyName(key.press)}</kbd></dt>
              <dd>${key.help ?? key.label}</dd>
            </div>`,
        )}
    </dl>`;
    ask({ title: "Keys", text }).catch(sayError); // where the dialog cannot be loaded
  }

  pageView() {
    const name = place.answer ? "mt-answer-page" : place.task ? "mt-task-page" : place.thread ? "mt-thread-page" : place.workers ? "mt-workers-page" : "";
    const isAway = store.status.state === "disconnected";
    if (name && !customElements.get(name) && (isAway || this.isLate)) {
      const note = isAway ? "This view comes with the connection." : "This view is being loaded. If it does not come, reload the page.";
      return html`<main id="page" class="page-note" tabindex="-1"><p role="status">${note}</p></main>`;
    }
    if (place.answer) return html`<mt-answer-page data-page .task=${place.answer}></mt-answer-page>`;
    if (place.task) return html`<mt-task-page data-page .task=${place.task} .tab=${place.tab}></mt-task-page>`;
    if (place.thread) return html`<mt-thread-page data-page .thread=${place.thread} .tab=${place.tab}></mt-thread-page>`;
    if (place.workers) return html`<mt-workers-page data-page></mt-workers-page>`;
    return html`<mt-list-page data-page></mt-list-page>`;
  }

  render() {
    if (this.refused) return refusedView(this.refused);
    if (!this.ready) return html`<p class="opening" role="status">Opening …</p>`;
    const stopped = store.status.state === "disconnected";
    return html`<div
      class="app"
      data-clock=${stopped ? "stopped" : "runs"}
      @command=${(/** @type {CustomEvent} */ event) => this.command(event.detail)}
      @searched=${() => !place.q || go({ q: place.q })}
    >
      <a class="skip" href="#page" @click=${skip}>Skip to the tasks</a>
      <mt-top-bar></mt-top-bar>
      <mt-banner></mt-banner>
      ${this.pageView()}
      <mt-footer view=${this.view}></mt-footer>
    </div>`;
  }
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault(); // a fragment would stay in the address
  document.querySelector("main")?.focus();
}

/** @param {string} reason */
const refusedView = (reason) =>
  html`<main id="page" class="refused">
    <h1>This page needs a key</h1>
    <p class="second">${reason}</p>
    <p>Open it from a terminal:</p>
    ${commandLine("meantime open")}
    <p class="second">
      The link that it prints works once. A tab that is open already can also hand its right on: open this page while it is open.
    </p>
  </main>`;

applyTheme();
customElements.define("mt-app", App);
