// @ts-check
/** The timeline of a task: a tree of turns, calls, waits and children on the left, their bars on one scale on the right. */
import { get, path } from "../core/api.js";
import { now, onTick } from "../core/clock.js";
import { PageElement, styles, vars } from "../core/element.js";
import { counted, duration, percent } from "../core/format.js";
import { icon } from "../core/icons.js";
import { store } from "../core/store.js";
import { html, nothing, repeat } from "../vendor/lit.js";
import { countsOf, lengthOf, rowsOf, stepOf } from "./timeline-model.js";

/** @typedef {import("./timeline-model.js").Timeline} Timeline */
/** @typedef {import("./timeline-model.js").TimelineRow} TimelineRow */

const ROW = 28; // px
const AHEAD = 8;
const LEAST_PAUSE = 1_000; // ms between two requests
const ZOOM = 1.6;
const MOST_ZOOM = 400;
const ICONS = /** @type {Record<string, string>} */ ({ queue: "queued", turn: "conversation", model: "agent", tool: "function", wait: "waiting", output: "all", child: "agent" });
const LEGEND = /** @type {const} */ ([["model", "model"], ["tool", "tool"], ["wait", "waiting"], ["error", "error"], ["child", "child task"], ["running", "running"]]);

export class TimelineView extends PageElement {
  static properties = { task: { attribute: false }, timeline: { state: true }, trouble: { state: true }, closed: { state: true }, zoom: { state: true }, at: { state: true } };

  constructor() {
    super();
    this.task = "";
    /** @type {Timeline|null} */
    this.timeline = null;
    this.trouble = "";
    /** @type {Set<string>} */
    this.closed = new Set();
    this.zoom = 1;
    this.at = "";
    this.scrolled = 0;
    this.tall = 600;
    this.wide = 800;
    /** @type {unknown} */
    this.seen = null;
    this.asking = false;
    this.askedAt = 0;
    this.skew = 0; // ms that the daemon's clock is ahead of this one
  }

  listen() {
    const resized = new ResizeObserver(([entry]) => {
      [this.tall, this.wide] = [entry.contentRect.height, Math.max(200, entry.contentRect.width - 340)];
      this.requestUpdate();
    });
    this.updateComplete.then(() => {
      const view = this.querySelector(".tl-scroll");
      if (view) resized.observe(view);
    });
    const look = () => void this.refresh();
    return [() => resized.disconnect(), store.subscribe(look), onTick(() => (look(), this.requestUpdate()))];
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has("task")) return;
    this.timeline = null;
    this.seen = null;
    this.askedAt = 0;
    void this.refresh();
  }

  /** Asks again if the task has changed, at most once a second. */
  async refresh() {
    const row = store.rows.get(this.task);
    if (!this.task || this.asking || Date.now() - this.askedAt < LEAST_PAUSE) return;
    if (this.timeline && row === this.seen) return;
    this.asking = true;
    const task = this.task;
    try {
      const timeline = await get(path`/v1/tasks/${task}/timeline`);
      if (task !== this.task) return;
      this.skew = Date.parse(timeline.now) - Date.now();
      this.timeline = timeline;
      this.seen = row;
      this.trouble = "";
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
    } finally {
      this.asking = false;
      this.askedAt = Date.now();
    }
  }

  /** @param {string} command @returns {boolean} whether it was one of ours */
  command(command) {
    const commands = /** @type {Record<string, () => void>} */ ({
      spanNext: () => this.move(1),
      spanPrevious: () => this.move(-1),
      spanOpen: () => this.fold(this.at, false),
      spanClose: () => this.fold(this.at, true),
      zoomIn: () => this.scale(ZOOM),
      zoomOut: () => this.scale(1 / ZOOM),
      zoomFit: () => (this.zoom = 1),
    });
    commands[command]?.();
    return command in commands;
  }

  get rows() {
    return this.timeline ? rowsOf(this.timeline.spans, this.closed) : [];
  }

  /** @param {number} by */
  scale(by) {
    this.zoom = Math.max(1, Math.min(MOST_ZOOM, this.zoom * by));
  }

  /** @param {string} id @param {boolean} close */
  fold(id, close) {
    const closed = new Set(this.closed);
    if (close) closed.add(id);
    else closed.delete(id);
    this.closed = closed;
  }

  /** @param {number} by */
  move(by) {
    const rows = this.rows;
    const at = rows.findIndex((row) => row.span.id === this.at);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (!next) return;
    this.at = next.span.id;
    const view = this.querySelector(".tl-scroll");
    const top = rows.indexOf(next) * ROW;
    if (!view) return;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + 2 * ROW > view.scrollTop + this.tall) view.scrollTop = top + 2 * ROW - this.tall;
  }

  /** @param {Event} event */
  onScroll(event) {
    this.scrolled = /** @type {HTMLElement} */ (event.currentTarget).scrollTop;
    this.requestUpdate();
  }

  /** @param {TimelineRow} row @param {number} length ms */
  rowView({ span, depth, parent }, length) {
    const end = span.endMs ?? length;
    const shape = { "--from": `${(100 * span.startMs) / length}%`, "--long": `${(100 * Math.max(0, end - span.startMs)) / length}%`, "--depth": String(depth) };
    const open = parent && !this.closed.has(span.id);
    const name = span.task ? html`<a href="?task=${encodeURIComponent(span.task)}">${span.name}</a>` : span.name;
    const took = [span.note, duration(end - span.startMs, span.endMs !== null)].filter(Boolean).join(" · ");
    return html`<div class="tl-row" role="row" ?data-current=${span.id === this.at} ?data-error=${span.error} @click=${() => (this.at = span.id)} ${vars(shape)}>
      <div class="tl-name" role="rowheader">
        ${parent ? html`<button class="tl-fold" aria-expanded=${open} aria-label=${open ? "Close" : "Open"} @click=${() => this.fold(span.id, open)}>${icon(open ? "down" : "right")}</button>` : html`<span class="tl-fold"></span>`}
        ${icon(span.error ? "failed" : (ICONS[span.kind] ?? "function"))}<span class="tl-word">${name}</span><code class="quiet" title=${span.detail}>${span.detail}</code>
      </div>
      <div class="tl-lane" role="gridcell"><span class="tl-bar" data-kind=${span.kind} ?data-running=${span.endMs === null} ?data-error=${span.error}></span><span class="tl-note">${took}</span></div>
    </div>`;
  }

  /** @param {Timeline} timeline @param {number} length ms */
  toolsView(timeline, length) {
    const { waits, errors, calls, turns } = countsOf(timeline);
    return html`<div class="tl-tools">
      <button class="button" @click=${() => (this.zoom = 1)}>${icon("search")}Fit<kbd>0</kbd></button>
      <button class="button small" aria-label="Zoom out" @click=${() => this.scale(1 / ZOOM)}>−</button>
      <button class="button small" aria-label="Zoom in" @click=${() => this.scale(ZOOM)}>+</button>
      ${waits ? html`<span class="amber">${counted(waits, "wait")}, ${duration(timeline.totals.waitMs, true)}</span>` : nothing}
      ${errors ? html`<span class="red">${counted(errors, "error")}</span>` : nothing}
      <span class="quiet">${calls || turns ? `${counted(calls, "call")}, ${counted(turns, "turn")}` : duration(length, true)}</span>
      <span class="log-space"></span>
      ${LEGEND.map(([kind, word]) => html`<span class="tl-legend quiet"><span class="tl-bar" data-kind=${kind} ?data-error=${kind === "error"} ?data-running=${kind === "running"}></span>${word}</span>`)}
    </div>`;
  }

  /** @param {number} length ms */
  scaleView(length) {
    const step = stepOf(length / this.zoom, this.wide);
    const ticks = Array.from({ length: Math.min(2_000, Math.floor(length / step)) }, (_, n) => (n + 1) * step);
    return html`<div class="tl-row tl-scale" role="row"><div class="tl-name quiet" role="columnheader">Turn, call, task</div>
      <div class="tl-lane" role="columnheader"><span class="unseen">Time</span>${ticks.map((tick) => html`<span class="tl-tick quiet" ${vars({ "--from": `${(100 * tick) / length}%` })}>${duration(tick, step < 1_000)}</span>`)}</div></div>`;
  }

  /** @param {Timeline} timeline @param {number} length ms */
  totalsView({ totals }, length) {
    const parts = /** @type {const} */ ([["model", "model", totals.modelMs], ["tool", "tools", totals.toolMs], ["wait", "waiting for you", totals.waitMs], ["queue", "queued", totals.queueMs]]);
    const shown = parts.filter(([, , time]) => time > 0);
    if (!shown.length) return nothing;
    return html`<div class="tl-totals"><b>Where ${duration(length, true)} went</b>
      <span class="tl-share" aria-hidden="true">${shown.map(([kind, , time]) => html`<span class="tl-bar" data-kind=${kind} ${vars({ "--share": String(time) })}></span>`)}</span>
      ${shown.map(([, word, time]) => html`<span class="quiet">${word} ${duration(time, true)}, ${percent(time, length)}</span>`)}</div>`;
  }

  render() {
    const timeline = this.timeline;
    if (!timeline) return html`<p class="quiet tl-none" role="status">${this.trouble || "Loading the timeline…"}</p>`;
    const length = lengthOf(timeline, now() + this.skew);
    const rows = this.rows;
    const from = Math.max(0, Math.floor(this.scrolled / ROW) - AHEAD);
    const shown = rows.slice(from, Math.ceil((this.scrolled + this.tall) / ROW) + AHEAD);
    return html`${this.toolsView(timeline, length)}
      ${timeline.folded ? html`<p class="quiet tl-none">${counted(timeline.folded, "older entry", "older entries")} not shown.</p>` : nothing}
      <div class="tl-scroll" role="grid" tabindex="0" aria-label="Timeline" aria-rowcount=${rows.length + 1} @scroll=${this.onScroll} ${vars({ "--zoom": String(this.zoom) })}>
        ${this.scaleView(length)}
        <div class="tl-canvas" role="rowgroup" ${styles({ height: `${rows.length * ROW}px` })}>
          <div class="tl-window" role="presentation" ${styles({ transform: `translateY(${from * ROW}px)` })}>
          ${repeat(shown, (row) => row.span.id, (row) => this.rowView(row, length))}</div></div>
        ${rows.length ? nothing : html`<p class="quiet tl-none">Nothing was recorded yet.</p>`}
      </div>
      ${this.totalsView(timeline, length)}`;
  }
}

customElements.define("mt-timeline", TimelineView);
