// @ts-check
/** The list view: rail, list, cursor, selection, and the commands of the keyboard. */
import { copy, say } from "../core/announce.js";
import { PageElement } from "../core/element.js";
import { count, counted, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { button } from "../core/parts.js";
import { go, onPlace, place } from "../core/router.js";
import { valueOf } from "../core/search-query.js";
import { store } from "../core/store.js";
import { html, nothing } from "../vendor/lit.js";
import { GROUPINGS, groupingOf } from "./grouping.js";
import { ListModel } from "./list-model.js";
import { PageLoader } from "./page-loader.js";
import { FILTERS, countOf } from "./rail.js";
import { GROUPS, groupOf } from "./row-groups.js";
import { askAndSave } from "./saved-views.js";
import "./stats-strip.js";
import "./task-list.js";

/** @typedef {import("./task-list.js").TaskList} TaskList */

// Kept while a task is open, so that coming back shows the same list at the same place.
const model = new ListModel();
let cursor = "";
let epoch = -1;

/** @type {typeof import("./list-extras.js")|null} */
let extras = null;

/** Loaded when the page is idle, or as soon as one of them is wanted. */
export async function loadExtras() {
  extras ??= await import("./list-extras.js");
  store.changed(); // something may wait for them
  return extras;
}

/** The task before or after another in the list, for moving on without going back. @param {string} id @param {number} by */
export function neighbour(id, by) {
  const ids = model.groups.flatMap((name) => model.order[name]);
  const at = ids.indexOf(id);
  return { id: at < 0 ? "" : (ids[at + by] ?? ""), place: at + 1, of: ids.length };
}

class ListPage extends PageElement {
  static properties = { selection: { state: true }, matching: { state: true } };

  constructor() {
    super();
    /** @type {Set<string>} */
    this.selection = new Set();
    this.matching = false; // everything that matches is meant
    this.anchor = "";
    this.loader = new PageLoader(model, () => this.requestUpdate());
    this.query = "";
  }

  listen() {
    this.query = place.q;
    model.groupBy(groupingOf(place.group));
    this.loader.start(place.q);
    epoch = store.epoch;
    return [store.subscribe((changed) => this.onRows(changed)), onPlace(() => this.onPlace()), () => model.hold(false)];
  }

  /** @returns {TaskList|null} */
  get list() {
    return this.querySelector("mt-task-list");
  }

  get isEmpty() {
    return !place.q && store.overview !== null && (store.overview.counts.all ?? 0) === 0 && store.rows.size === 0;
  }

  /** Its keys, as keys.js names them. */
  get view() {
    return this.isEmpty ? "empty" : "list";
  }

  onPlace() {
    model.groupBy(groupingOf(place.group));
    this.requestUpdate();
    if (place.q === this.query) return;
    this.query = place.q;
    this.clearSelection();
    this.loader.start(place.q);
  }

  /** @param {Set<string>} changed */
  onRows(changed) {
    if (epoch !== store.epoch) {
      epoch = store.epoch; // a new snapshot: what was loaded before it may be old
      if (model.held) model.update(changed);
      else this.loader.start(this.query);
    } else model.update(changed);
    this.requestUpdate();
  }

  clearSelection() {
    this.selection = new Set();
    this.matching = false;
  }

  /** @param {string} id */
  async setCursor(id) {
    cursor = id;
    this.requestUpdate();
    await this.updateComplete;
    this.list?.reveal(id);
  }

  /** @param {string} id @param {boolean} range */
  toggle(id, range) {
    const selection = new Set(this.selection);
    this.matching = false;
    if (range && this.anchor && this.list) {
      const ids = this.list.layout.ids();
      const [from, to] = [ids.indexOf(this.anchor), ids.indexOf(id)].sort((a, b) => a - b);
      for (const each of from < 0 ? [id] : ids.slice(from, to + 1)) selection.add(each);
    } else selection.delete(id) || selection.add(id);
    this.anchor = id;
    this.selection = selection;
    this.setCursor(id);
  }

  /** @param {string} name one of keys.js @returns {boolean} whether it is known here */
  command(name) {
    const list = this.list;
    if (this.isEmpty) return extras?.emptyCommand(name) ?? false;
    const moves = /** @type {Record<string, number>} */ ({
      next: 1,
      previous: -1,
      first: -1e9,
      last: 1e9,
      pageDown: list?.pageRows ?? 0,
      pageUp: -(list?.pageRows ?? 0),
    });
    if (name in moves) {
      list?.viewport?.focus({ preventScroll: true });
      list?.move(moves[name]);
    } else if (name === "open") cursor && go({ task: cursor });
    else if (name === "select" || name === "selectTo") cursor && this.toggle(cursor, name === "selectTo");
    else if (name === "release") this.release();
    else if (name === "copy") cursor && copy(cursor, "the id");
    else if (name === "escape") this.escape();
    else if (name === "group") this.groupBy(GROUPINGS[(GROUPINGS.indexOf(model.grouping) + 1) % GROUPINGS.length]);
    else if (name === "saveView") askAndSave();
    else if (name === "cancel" && this.selection.size)
      loadExtras().then(async ({ bulk }) => (await bulk("cancel", this.selection, this.all)) && this.clearSelection());
    else if (["cancel", "answer", "resume", "fork", "send"].includes(name)) cursor && loadExtras().then(({ actOn }) => actOn(name, cursor));
    else return false;
    return true;
  }

  escape() {
    if (this.selection.size) this.clearSelection();
    else if (document.activeElement === this.list?.viewport) this.list?.viewport?.blur();
    else if (place.q) go({ q: "" });
  }

  release() {
    model.release();
    this.requestUpdate();
  }

  get all() {
    return { matching: this.matching, query: place.q, total: this.total };
  }

  /** How many tasks match; more than are loaded. */
  get total() {
    if (!place.q) return Math.max(model.length, store.overview?.counts.all ?? 0);
    return this.loader.state === "done" && !this.loader.error ? model.length : Math.max(model.length, this.loader.total);
  }

  /** How many each group has. The counters know all tasks; of a search only the loaded ones are grouped. */
  get totals() {
    /** @type {Record<string, number>} */
    const totals = {};
    if (model.grouping !== "state") return totals; // the counters know states: of other groups the loaded tasks are counted
    for (const { name, states } of GROUPS)
      totals[name] = place.q ? model.order[name].length : Math.max(model.order[name].length, countOf(states.join(",")));
    if (place.q) totals.finished = Math.max(totals.finished, this.total - totals.needs - totals.running - totals.queued);
    return totals;
  }

  get title() {
    const status = valueOf(place.q, "status");
    return FILTERS.find((filter) => filter.status === status && status)?.title ?? "All tasks";
  }

  headView() {
    const words = place.q ? `${count(this.total)}${this.loader.exact ? "" : "+"} match` : counted(this.total, "task");
    const asOf = store.status.state === "disconnected" ? ` · as of ${time(store.status.since)}` : "";
    return html`<div class="list-head">
      <b aria-hidden="true">${this.title}</b>
      <span class="second">${words}${asOf}</span>
      <span class="spring"></span>
      ${this.pill()}
      <label class="group-by"
        >Group
        <select @change=${(/** @type {Event} */ event) => this.groupBy(/** @type {HTMLSelectElement} */ (event.target).value)}>
          ${GROUPINGS.map((name) => html`<option value=${name} .selected=${name === model.grouping}>${name}</option>`)}
        </select>
      </label>
      ${button("Save view", { key: "V", press: askAndSave })}
    </div>`;
  }

  /** @param {string} name */
  groupBy(name) {
    go({ group: name === "state" ? "" : name }, true);
    say(`Grouped by ${name}.`);
  }

  pill() {
    if (!model.held || !model.waiting.size) return nothing;
    const [arrived, moved] = [model.arrived, model.waiting.size - model.arrived];
    const words = arrived ? `${count(arrived)} new` : `${count(moved)} moved`;
    return html`<button class="pill" @click=${() => this.release()}>
      ${icon("lock")}<span>Order held · ${words}</span><kbd>o</kbd>
    </button>`;
  }

  listView() {
    if (this.loader.error) return html`<p class="list-note bad" role="alert">${this.loader.error}</p>`;
    if (!model.length && store.overview && this.loader.state !== "loading")
      return html`<p class="list-note">No task matches <code>${place.q}</code>. <a class="link" href="/">Show all tasks</a></p>`;
    return html`<mt-task-list
      .model=${model}
      .cursor=${cursor}
      .selection=${this.selection}
      .totals=${this.totals}
      @cursor=${(/** @type {CustomEvent} */ event) => this.setCursor(event.detail)}
      @open-task=${(/** @type {CustomEvent} */ event) => go({ task: event.detail })}
      @toggle=${(/** @type {CustomEvent} */ event) => this.toggle(event.detail.id, event.detail.range)}
      @hold=${(/** @type {CustomEvent} */ event) => (model.hold(event.detail), this.requestUpdate())}
      @more=${() => this.loader.more()}
    ></mt-task-list>`;
  }

  render() {
    // A daemon that is away serves no files: they are asked for again when the page is live.
    if (!extras && (this.isEmpty || this.selection.size)) loadExtras().catch(() => null);
    const row = store.rows.get(cursor);
    return html`<mt-stats></mt-stats>
      <div class="with-rail">
        <mt-rail></mt-rail>
        <main id="page" tabindex="-1" class="list-page" data-group=${row ? groupOf(row) : nothing}>
          <h1 class="unseen">${this.title}</h1>
          ${
            extras && (this.selection.size || this.matching)
              ? extras.bulkBar(this.selection, this.all, { clear: () => this.clearSelection(), all: () => (this.matching = true) })
              : this.headView()
          }
          ${this.isEmpty ? (extras?.emptyView() ?? nothing) : this.listView()}
        </main>
      </div>`;
  }
}

customElements.define("mt-list-page", ListPage);
