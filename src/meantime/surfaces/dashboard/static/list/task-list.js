// @ts-check
/** The list of tasks: groups of rows, of which only those in the window are on the page. */
import { isStopped, now, onTick, whenIdle } from "../core/clock.js";
import { PageElement, styles } from "../core/element.js";
import { count } from "../core/format.js";
import { icon } from "../core/icons.js";
import { store } from "../core/store.js";
import { guard, html, nothing, repeat } from "../vendor/lit.js";
import { ListLayout } from "./list-layout.js";
import { hasEnded } from "./row-groups.js";
import { rowView } from "./row-view.js";

/** @typedef {import("./list-model.js").ListModel} ListModel */

const AHEAD = 8; // rows beyond the window, so that a quick scroll does not show blanks
const AROUND = 200; // px that the page has above and below the list
const NARROW = matchMedia("(max-width: 719px)");
const COLUMNS_HEIGHT = 28;
const COLUMNS = ["Status", "Id", "Task", "Kind", "Now", "Progress", "Conversation", "Time"];

/**
 * Events: `cursor` (detail: id), `open-task` (id), `toggle` ({id, range}), `hold` (boolean), `more` when the end is near.
 */
export class TaskList extends PageElement {
  static properties = {
    model: { attribute: false },
    cursor: { attribute: false },
    selection: { attribute: false },
    totals: { attribute: false },
    folded: { state: true },
  };

  constructor() {
    super();
    /** @type {ListModel|null} */
    this.model = null;
    this.cursor = "";
    /** @type {Set<string>} */
    this.selection = new Set();
    /** @type {Record<string, number>} how many tasks each group has, with those that are not loaded */
    this.totals = {};
    /** @type {Set<string>} names of groups */
    this.folded = new Set();
    this.scrolled = 0;
    this.tall = Math.max(64, innerHeight - AROUND); // until it is measured
    this.ahead = 0; // rows: the first view draws what is seen
    this.pointed = false;
  }

  listen() {
    const resized = new ResizeObserver(([entry]) => {
      this.tall = entry.contentRect.height;
      this.requestUpdate();
    });
    this.updateComplete.then(() => this.viewport && resized.observe(this.viewport));
    const redraw = () => this.requestUpdate();
    whenIdle(() => ((this.ahead = AHEAD), redraw()));
    NARROW.addEventListener("change", redraw);
    return [
      onTick(redraw),
      store.subscribe(redraw),
      () => resized.disconnect(),
      () => NARROW.removeEventListener("change", redraw),
    ];
  }

  /** @returns {HTMLElement|null} */
  get viewport() {
    return this.querySelector(".list-scroll");
  }

  get layout() {
    const [row, head] = NARROW.matches ? [64, 32] : [32, 28]; // as list.css and narrow.css have them
    return new ListLayout(/** @type {ListModel} */ (this.model), this.folded, row, head);
  }

  /** @param {string} name @param {unknown} detail */
  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** Scrolls so far that the task is seen. @param {string} id */
  reveal(id) {
    const layout = this.layout;
    const [top, view] = [layout.topOf(id), this.viewport];
    if (top < 0 || !view) return;
    if (top - layout.head < view.scrollTop) view.scrollTop = Math.max(0, top - layout.head);
    const below = top + layout.row + (NARROW.matches ? 0 : COLUMNS_HEIGHT) - this.tall;
    if (below > view.scrollTop) view.scrollTop = below;
  }

  /** Moves the cursor by so many rows. @param {number} by */
  move(by) {
    const ids = this.layout.ids();
    const at = ids.indexOf(this.cursor);
    const to = at < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.max(0, Math.min(ids.length - 1, at + by));
    if (ids.length) this.tell("cursor", ids[to]);
  }

  get pageRows() {
    return Math.max(1, Math.floor(this.tall / this.layout.row) - 1);
  }

  /** @param {Event} event */
  onScroll(event) {
    this.scrolled = /** @type {HTMLElement} */ (event.currentTarget).scrollTop;
    this.requestUpdate();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const target = /** @type {Element} */ (event.target);
    const id = /** @type {HTMLElement|null} */ (target.closest(".row"))?.dataset.id;
    if (!id) return;
    if (target.closest("[data-select]")) return this.tell("toggle", { id, range: event.shiftKey });
    if (target.closest("a")) return;
    if (event.shiftKey) return this.tell("toggle", { id, range: true });
    this.tell("cursor", id);
    if (NARROW.matches) this.tell("open-task", id);
  }

  /** @param {MouseEvent} event */
  onDoubleClick(event) {
    const id = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest(".row"))?.dataset.id;
    if (id) this.tell("open-task", id);
  }

  /** @param {boolean} inside @param {"pointer"|"focus"} by */
  onInside(inside, by) {
    if (by === "pointer") this.pointed = inside;
    this.tell("hold", this.pointed || (by === "focus" ? inside : this.viewport === document.activeElement));
  }

  /** @param {string} group */
  fold(group) {
    const folded = new Set(this.folded);
    folded.delete(group) || folded.add(group);
    this.folded = folded;
  }

  /** @param {import("./list-layout.js").Line} line */
  headView({ section, index }) {
    const open = section.shown > 0;
    return html`<div class="group" role="row" aria-rowindex=${index + 2}>
      <span role="gridcell" aria-colspan="9">
        <button class="group-button" tabindex="-1" aria-expanded=${open} @click=${() => this.fold(section.group)}>
          ${icon(open ? "down" : "right")}<b dir="auto">${section.title}</b>
          <span class="quiet">${count(this.totals[section.group] ?? section.ids.length)}</span>
        </button>
        ${this.model?.grouping === "state" && section.group === "finished" ? html`<span class="group-note">newest first</span>` : nothing}
      </span>
    </div>`;
  }

  /** @param {import("./list-layout.js").Line} line */
  lineView(line) {
    if (!line.id) return this.headView(line);
    const row = store.rows.get(line.id);
    if (!row)
      return html`<div class="row row-gone" role="row" aria-rowindex=${line.index + 2}>
        <span role="gridcell">no longer listed</span>
      </div>`;
    const [stopped, current, selected] = [isStopped(), line.id === this.cursor, this.selection.has(line.id)];
    const tick = hasEnded(row) ? 0 : Math.floor(now() / 1_000); // a row that has ended is not rendered for the clock
    return guard([row, tick, stopped, current, selected, line.index], () =>
      rowView(row, { now: now(), stopped, current, selected, index: line.index + 2 }),
    );
  }

  render() {
    if (!this.model) return nothing;
    const layout = this.layout;
    const ahead = this.ahead * layout.row;
    const { top, lines } = layout.window(this.scrolled - ahead, this.scrolled + this.tall + ahead);
    if (this.scrolled + this.tall + 4 * AHEAD * layout.row > layout.height) queueMicrotask(() => this.tell("more", null));
    const cursorShown = lines.some((line) => line.id === this.cursor && line.id);
    return html`<div
      class="list-scroll"
      role="grid"
      tabindex="0"
      aria-label="Tasks"
      aria-multiselectable="true"
      aria-rowcount=${layout.lines + 1}
      aria-activedescendant=${cursorShown ? `row-${this.cursor}` : nothing}
      @scroll=${this.onScroll}
      @click=${this.onClick}
      @dblclick=${this.onDoubleClick}
      @pointerenter=${() => this.onInside(true, "pointer")}
      @pointerleave=${() => this.onInside(false, "pointer")}
      @focus=${() => this.onInside(true, "focus")}
      @blur=${() => this.onInside(false, "focus")}
    >
      <div class="columns" role="row" aria-rowindex="1">
        <span role="columnheader"><span class="unseen">Selected</span></span>
        ${COLUMNS.map((name) => html`<span role="columnheader">${name}</span>`)}
      </div>
      <div class="list-canvas" role="rowgroup" ${styles({ height: `${layout.height}px` })}>
        <div class="list-window" role="presentation" ${styles({ transform: `translateY(${top}px)` })}>
          ${repeat(
            lines,
            (line) => line.id || `group ${line.section.group}`,
            (line) => this.lineView(line),
          )}
        </div>
      </div>
    </div>`;
  }
}

customElements.define("mt-task-list", TaskList);
