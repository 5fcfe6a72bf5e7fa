// @ts-check
/** One task: its head with all actions, its tabs, and what is beside them. */
import { copy } from "../core/announce.js";
import { ApiError, get, path } from "../core/api.js";
import { now, onTick } from "../core/clock.js";
import { PageElement } from "../core/element.js";
import { count, duration, ms, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { MAPS } from "../core/keys.js";
import { button, tabs } from "../core/parts.js";
import { address, go, place } from "../core/router.js";
import { print, term } from "../core/search-query.js";
import { store } from "../core/store.js";
import { neighbour } from "../list/list-page.js";
import { hasEnded } from "../list/row-groups.js";
import { kindOf, nowOf, timeOf } from "../list/row-texts.js";
import { stateMark } from "../list/row-view.js";
import { html, nothing } from "../vendor/lit.js";
import { DOINGS, act, reasonAgainst } from "./actions.js";
import { inspector } from "./task-inspector.js";
import { overviewTab, rawTab } from "./task-overview.js";
import "./task-runs.js";

/** @typedef {import("../core/types.js").Task} Task */
/** @typedef {import("../core/types.js").Row} Row */

const TABS = ["overview", "timeline", "log", "messages", "runs", "raw"];
const WIDE = ["log"]; // tabs that have the whole width
const REST = 400; // ms between two looks at a task that changes quickly
const FIRST_ACTIONS = ["answer", "cancel", "send", "resume", "fork"]; // with keys; the others are in the menu

class TaskPage extends PageElement {
  static properties = { task: {}, tab: {}, data: { state: true }, error: { state: true }, missing: { state: true } };

  constructor() {
    super();
    this.task = "";
    this.tab = "";
    /** @type {Task|null} */
    this.data = null;
    this.error = "";
    this.missing = "";
    this.timer = 0;
    this.asked = 0;
  }

  listen() {
    const update = (/** @type {Set<string>} */ changed) => (this.data && changed.has(this.data.id) ? this.lookSoon() : undefined);
    return [store.subscribe(update), onTick(() => this.requestUpdate()), () => clearTimeout(this.timer)];
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("task")) {
      this.data = null;
      this.error = "";
      this.look();
    }
    if (changed.has("tab") || changed.has("task")) this.loadTab();
  }

  /** Its keys, as keys.js names them. */
  get view() {
    return `task-${this.open}` in MAPS ? `task-${this.open}` : "task";
  }

  get open() {
    return TABS.includes(this.tab) ? this.tab : "overview";
  }

  /** The row of the stream is newer than the one that was asked for. @returns {Row|null} */
  get row() {
    return (this.data && store.rows.get(this.data.id)) ?? this.data?.row ?? null;
  }

  lookSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), REST);
  }

  async look() {
    const asked = ++this.asked;
    try {
      const data = await get(path`/v1/tasks/${this.task}`);
      if (asked === this.asked) this.data = data;
    } catch (error) {
      if (asked === this.asked && !this.data) this.error = error instanceof ApiError ? error.message : String(error);
    }
  }

  /** Loads the module of the open tab, if it is not part of this one. */
  async loadTab() {
    const tab = this.open;
    this.missing = "";
    if (!["timeline", "log", "messages"].includes(tab)) return;
    const module = `../${tab}/${tab}-view.js`;
    await import(module).catch(() => (this.missing = tab));
    this.requestUpdate();
  }

  /** @param {string} name one of keys.js @returns {boolean} whether it is known here */
  command(name) {
    const inner = /** @type {any} */ (this.querySelector("[data-tab]"));
    if (inner?.command?.(name)) return true;
    const tab = TABS[Number(/^tab(\d)$/.exec(name)?.[1]) - 1];
    if (tab) go({ task: this.task, tab }, true);
    else if (name === "next" || name === "previous") this.step(name === "next" ? 1 : -1);
    else if (name === "copy") copy(this.data?.id ?? this.task, "the id");
    else if (name === "escape") go({});
    else if (name in DOINGS) this.data && act(name, this.data).then(() => this.look());
    else return false;
    return true;
  }

  /** @param {number} by */
  step(by) {
    const { id } = neighbour(this.data?.id ?? this.task, by);
    if (id) go({ task: id, tab: this.tab }, true);
  }

  /** @param {Row} row */
  trail(row) {
    const at = neighbour(row.id, 0);
    return html`<nav class="trail" aria-label="Where this task belongs">
      <a href=${address({})}>Tasks</a>${icon("right")}<a href=${address({ thread: row.thread })} dir="auto">${row.thread}</a>
      ${row.batch ? html`${icon("right")}<a href=${address({ q: print([term("batch", row.batch)]) })} dir="auto">${row.batch}</a>` : nothing}
      ${icon("right")}<span class="mono" aria-current="page">${row.shortId}</span>
      <span class="spring"></span>
      ${at.place ? html`<kbd>k</kbd><kbd>j</kbd><span class="quiet">${count(at.place)} of ${count(at.of)}</span>` : nothing}
    </nav>`;
  }

  actionsView() {
    const all = this.data?.actions ?? [];
    const first = FIRST_ACTIONS.flatMap((name) => all.find((action) => action.name === name) ?? []).sort(
      (a, b) => Number(b.legal) - Number(a.legal),
    );
    const rest = all.filter((action) => !FIRST_ACTIONS.includes(action.name) && action.name in DOINGS);
    const show = (/** @type {import("../core/types.js").Action} */ action) => {
      const { word, icon: name, key } = DOINGS[action.name];
      return button(word, { icon: name, key, reason: reasonAgainst(action), press: () => this.command(action.name) });
    };
    return html`<div class="task-actions">
      ${first.filter((action) => action.name !== "answer" || action.legal).map(show)}
      ${button("Copy id", { icon: "copy", key: "y", press: () => this.command("copy") })}
      <details class="menu" @click=${(/** @type {Event} */ event) => event.stopPropagation()}>
        <summary class="button" aria-label="More actions">${icon("more")}</summary>
        <div class="menu-items">${rest.map(show)}</div>
      </details>
    </div>`;
  }

  /** @param {Row} row */
  meta(row) {
    const ended = hasEnded(row);
    const times = ended
      ? `${time(row.startedAt)} – ${time(row.endedAt)}`
      : row.startedAt
        ? `started ${time(row.startedAt)}`
        : `queued ${time(row.createdAt)}`;
    return html`<p class="task-meta">
      ${stateMark(row, now())}<span>${kindOf(row)}</span><span>run ${row.run}</span><span>${times}</span
      ><span class="strong">${timeOf(row, now())}</span>
      ${ended ? nothing : html`<span>last event ${duration(now() - ms(row.lastEventAt))} ago</span>`}
      ${nowOf(row, now()) ? html`<span class="task-now" dir="auto">${nowOf(row, now())}</span>` : nothing}
    </p>`;
  }

  tabsView() {
    const notes = { runs: this.row && this.row.run > 1 ? this.row.run : 0 };
    const list = TABS.map((name) => ({
      name,
      label: name[0].toUpperCase() + name.slice(1),
      href: address({ task: this.task, tab: name === "overview" ? "" : name }),
      note: notes[/** @type {keyof typeof notes} */ (name)],
    }));
    return tabs(list, this.open, "Views of this task");
  }

  /** @param {Task} data @param {Row} row */
  body(data, row) {
    if (this.missing === this.open)
      return html`<p class="list-note bad" role="alert">The files of this view are missing. Install Meantime again.</p>`;
    switch (this.open) {
      case "timeline":
        return html`<mt-timeline data-tab .task=${data.id}></mt-timeline>`;
      case "log":
        return html`<mt-log data-tab .task=${data.id}></mt-log>`;
      case "messages":
        return html`<mt-messages data-tab .task=${data.id}></mt-messages>`;
      case "runs":
        return html`<mt-runs data-tab .task=${data.id} .run=${row.run}></mt-runs>`;
      case "raw":
        return rawTab(data);
      default:
        return overviewTab(data, row);
    }
  }

  render() {
    if (this.error)
      return html`<main id="page" class="page-note" tabindex="-1">
        <h1>No such task here</h1>
        <p class="second">${this.error}</p>
        <a class="link" href=${address({})}>All tasks</a>
      </main>`;
    const [data, row] = [this.data, this.row];
    if (!data || !row)
      return html`<main id="page" class="page-note" tabindex="-1">
        <p role="status" class="quiet">Looking for ${place.task} …</p>
      </main>`;
    return html`<main id="page" class="task" tabindex="-1">
      <header class="task-head">
        ${this.trail(row)}
        <div class="task-title">
          <h1 dir="auto">${row.title}</h1>
          ${this.actionsView()}
        </div>
        ${this.meta(row)}
      </header>
      ${this.tabsView()}
      <div class="task-body" data-wide=${WIDE.includes(this.open) ? "" : nothing}>
        <div class="task-tab">${this.body(data, row)}</div>
        ${WIDE.includes(this.open) ? nothing : inspector(data, row)}
      </div>
    </main>`;
  }
}

customElements.define("mt-task-page", TaskPage);
