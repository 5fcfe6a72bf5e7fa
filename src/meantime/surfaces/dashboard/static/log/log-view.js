// @ts-check
/**
 * The output of a task: colours, 100,000 lines of which only those in the window are on the page, follow, search,
 * wrap, download, and gaps where output was not kept.
 */
import { copy, say, sayError } from "../core/announce.js";
import { authorization, path, refusal } from "../core/api.js";
import { PageElement, styles } from "../core/element.js";
import { bytes, count, counted } from "../core/format.js";
import { icon } from "../core/icons.js";
import { html, nothing } from "../vendor/lit.js";
import { LogBuffer } from "./log-buffer.js";
import { LogLayout, cuts } from "./log-layout.js";
import { folded, gapView, lineView, marked } from "./log-line.js";
import { LogSearch } from "./log-search.js";
import { LogStream } from "./log-stream.js";

const ROW = 20; // px
const [PACE, RUSH] = [100, 150]; // ms between two drawings; RUSH if more lines came than the window has
const AHEAD = 10; // rows beyond the window
const FAILURE = /\b(FAILED|FAIL|ERROR|FATAL|panic:|Traceback|error(\[\w+\])?:)/;
const COPIED = 2_000_000; // characters

export class LogView extends PageElement {
  static properties = {
    task: { attribute: false },
    stream: { state: true },
    wrap: { state: true },
    follow: { state: true },
    ended: { state: true },
    trouble: { state: true },
    regex: { state: true },
    exact: { state: true },
    at: { state: true },
  };

  constructor() {
    super();
    this.task = "";
    this.stream = "both";
    this.wrap = false;
    this.follow = true;
    this.ended = false;
    this.trouble = "";
    this.regex = false;
    this.exact = false;
    this.at = -1; // the current line, counted with those that were dropped
    this.total = 0; // bytes
    this.scrolled = 0;
    this.tall = 400;
    this.wide = 80; // columns
    this.drawing = false;
    this.drawn = 0; // ms, by the browser's clock
    this.pace = PACE;
    this.seen = 0; // lines that had come when it was drawn
    /** @type {LogStream|null} */
    this.source = null;
    this.buffer = new LogBuffer();
    this.layout = new LogLayout(this.buffer);
    this.search = new LogSearch(this.buffer, () => this.redraw());
  }

  #clear() {
    this.buffer = new LogBuffer();
    this.layout = new LogLayout(this.buffer);
    this.search = new LogSearch(this.buffer, () => this.redraw());
    this.total = 0;
    this.at = -1;
    this.ended = false;
    this.trouble = "";
  }

  listen() {
    const resized = new ResizeObserver(([entry]) => this.measure(entry.contentRect));
    this.updateComplete.then(() => this.view && resized.observe(this.view));
    return [() => resized.disconnect(), () => this.source?.stop()];
  }

  /** @returns {HTMLElement|null} */
  get view() {
    return this.querySelector(".log-scroll");
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (!changed.has("task") && !changed.has("stream")) return;
    this.source?.stop();
    this.#clear();
    if (!this.task) return;
    const redraw = () => {
      this.search.more();
      this.redraw();
    };
    this.source = new LogStream(this.task, this.stream, {
      text: (text) => (this.buffer.push(text), redraw()),
      gap: (lost) => (this.buffer.gap(lost), redraw()),
      total: (total) => (this.total = total),
      ended: () => (this.ended = true),
      trouble: (error) => (this.trouble = error ? error.message : ""),
    });
    void this.source.run();
  }

  /** At most ten times a second, however many pieces come: nobody reads more, and a hidden page draws nothing. */
  redraw() {
    if (this.drawing) return;
    this.drawing = true;
    setTimeout(() => requestAnimationFrame(() => this.draw()), Math.max(0, this.drawn + this.pace - performance.now()));
  }

  draw() {
    this.drawing = false;
    this.drawn = performance.now();
    const come = this.buffer.dropped + this.buffer.lines.length;
    this.pace = (come - this.seen) * ROW > this.tall ? RUSH : PACE;
    this.seen = come;
    this.requestUpdate();
  }

  updated() {
    const view = this.view;
    if (view && this.follow && view.scrollTop !== this.scrolled) view.scrollTop = this.scrolled;
  }

  /** @param {{width: number, height: number}} size */
  measure({ width, height }) {
    const probe = this.querySelector(".log-probe");
    const letter = (probe?.getBoundingClientRect().width ?? 72) / 10;
    this.tall = height;
    this.wide = Math.max(20, Math.floor((width - 96) / letter));
    this.requestUpdate();
  }

  /** @param {Event} event */
  onScroll(event) {
    const view = /** @type {HTMLElement} */ (event.currentTarget);
    if (view.scrollTop === this.scrolled) return; // we scrolled it ourselves
    const up = view.scrollTop < this.scrolled;
    this.scrolled = view.scrollTop;
    const atEnd = view.scrollTop + view.clientHeight >= view.scrollHeight - ROW;
    if (up && !atEnd) this.follow = false;
    else if (atEnd) this.follow = true;
    this.requestUpdate();
  }

  /**
   * A key of the page. @param {string} command
   * @returns {boolean} whether it was one of ours
   */
  command(command) {
    const commands = /** @type {Record<string, () => void>} */ ({
      find: () => /** @type {HTMLElement|null} */ (this.querySelector(".log-find input"))?.focus(),
      hitNext: () => this.hit(1),
      hitPrevious: () => this.hit(-1),
      failure: () => this.firstFailure(),
      start: () => this.go(this.buffer.dropped),
      end: () => this.toEnd(),
      wrap: () => (this.wrap = !this.wrap),
      follow: () => this.toEnd(),
      download: () => void this.download(),
    });
    const own = commands[command];
    own?.();
    return Boolean(own);
  }

  /** @param {number} line counted with those that were dropped */
  go(line) {
    const view = this.view;
    if (line < 0 || !view) return;
    this.at = line;
    this.follow = false;
    view.scrollTop = Math.max(0, this.layout.rowOf(line - this.buffer.dropped) * ROW - this.tall / 3);
  }

  toEnd() {
    this.follow = true;
    const view = this.view;
    if (view) view.scrollTop = view.scrollHeight;
  }

  /** @param {1|-1} by */
  hit(by) {
    this.go(this.search.next(this.at, by));
  }

  firstFailure() {
    const found = this.buffer.lines.findIndex((_, at) => FAILURE.test(this.buffer.text(at)));
    if (found < 0) say("No line looks like a failure.");
    else this.go(found + this.buffer.dropped);
  }

  /** @param {InputEvent} event */
  onFind(event) {
    this.find(/** @type {HTMLInputElement} */ (event.target).value);
  }

  /** @param {string} text */
  find(text) {
    this.search.set(text, { regex: this.regex, exact: this.exact });
  }

  /** @param {"regex"|"exact"} name */
  toggle(name) {
    this[name] = !this[name];
    this.find(/** @type {HTMLInputElement|null} */ (this.querySelector(".log-find input"))?.value ?? "");
  }

  /** @param {KeyboardEvent} event */
  onFindKey(event) {
    if (event.key === "Enter") this.hit(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.view?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  copyAll() {
    const text = this.buffer.lines.map((line, at) => (line.lost ? `[${bytes(line.lost)} not kept]` : this.buffer.text(at))).join("\n");
    if (text.length > COPIED) sayError("This log is too long to copy. Download it.");
    else void copy(text, counted(this.buffer.lines.length, "line"));
  }

  /** The bytes as they are: a log that still grows is read as far as it has come. */
  async download() {
    /** @type {Record<string, string>} */
    const query = this.ended ? { follow: "1" } : { limit: "1048576", tail: "100000" };
    try {
      const url = `${path`/v1/tasks/${this.task}/output`}?${new URLSearchParams({ ...query, stream: this.stream })}`;
      const response = await fetch(url, { headers: authorization(), cache: "no-store" });
      if (!response.ok) throw await refusal(response);
      const blob = this.ended ? await response.blob() : new Blob([(await response.json()).data ?? ""]);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${this.task}.log`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      sayError(error);
    }
  }

  toolsView() {
    const { search } = this;
    const place = search.hits.indexOf(this.at) + 1;
    const found = search.problem || (search.pattern ? `${place ? `${count(place)} of ` : ""}${count(search.found)}` : "");
    return html`<div class="log-tools">
      <label class="log-find">${icon("search")}<input type="search" placeholder="Search the log" aria-label="Search the log" @input=${this.onFind} @keydown=${this.onFindKey} />
        <span class="quiet" role="status">${found}</span></label>
      <button class="button small" aria-pressed=${this.exact} title="Match upper and lower case" @click=${() => this.toggle("exact")}>Aa</button>
      <button class="button small" aria-pressed=${this.regex} title="Regular expression" @click=${() => this.toggle("regex")}>.*</button>
      <button class="button" @click=${this.firstFailure}>${icon("failed")}First failure<kbd>e</kbd></button>
      <span class="log-space"></span>
      <label class="log-stream"><span class="unseen">Stream</span>
        <select aria-label="Stream" @change=${(/** @type {Event} */ event) => (this.stream = /** @type {HTMLSelectElement} */ (event.target).value)}>
          ${["both", "stdout", "stderr"].map((name) => html`<option value=${name} ?selected=${name === this.stream}>${name === "both" ? "stdout and stderr" : name}</option>`)}
        </select></label>
      <button class="button" aria-pressed=${this.follow && !this.ended} aria-disabled=${this.ended} @click=${this.toEnd}>${icon("down")}${this.ended ? "Follow: ended" : "Follow"}</button>
      <button class="button" aria-pressed=${this.wrap} @click=${() => (this.wrap = !this.wrap)}>Wrap<kbd>w</kbd></button>
      <button class="button" @click=${this.copyAll}>${icon("copy")}Copy</button>
      <button class="button" @click=${this.download}>${icon("down")}Download<kbd>D</kbd></button>
    </div>`;
  }

  /** @param {number} at */
  rowView(at) {
    const line = this.buffer.lines[at];
    if (line.lost) return gapView(line.lost);
    const text = this.buffer.text(at);
    const spans = marked(this.buffer.spans(at), this.search.stretches(text));
    const parts = this.wrap ? folded(spans, cuts(text, this.wide)) : [spans];
    return lineView(line, parts, at + this.buffer.dropped === this.at);
  }

  render() {
    if (!this.task) return nothing;
    const { buffer, layout } = this;
    layout.wrap(this.wrap ? this.wide : 0);
    layout.update();
    // The end is computed: to ask the page for it would lay it out, and then the rows would be rendered once more.
    if (this.follow) this.scrolled = Math.max(0, layout.rows * ROW - this.tall);
    const from = layout.lineAt(Math.max(0, Math.floor(this.scrolled / ROW) - (this.follow ? 1 : AHEAD)));
    const upTo = Math.min(buffer.lines.length, layout.lineAt(Math.ceil((this.scrolled + this.tall) / ROW) + AHEAD) + 1);
    const rows = [];
    for (let at = from; at < upTo; at++) rows.push(this.rowView(at));
    return html`${this.toolsView()}
      ${this.trouble ? html`<p class="log-trouble" role="status">${icon("warning")}${this.trouble}</p>` : nothing}
      <div class="log-scroll" ?data-wrap=${this.wrap} tabindex="0" role="region" aria-label="Output" @scroll=${this.onScroll}>
        <span class="log-probe" aria-hidden="true">0000000000</span>
        <div class="log-canvas" ${styles({ height: `${layout.rows * ROW}px` })}>
          <div class="log-window" ${styles({ transform: `translateY(${layout.rowOf(from) * ROW}px)` })}>${rows}</div>
        </div>
        ${buffer.lines.length || this.trouble ? nothing : html`<p class="quiet log-none">${this.ended ? "It printed nothing." : "Nothing printed yet."}</p>`}
      </div>
      <div class="log-foot quiet"><span>${this.ended ? "The log has ended." : "Live"}</span>
        <span>${counted(buffer.lines.length, "line")}${buffer.dropped ? `, ${count(buffer.dropped)} older ones dropped by this page` : ""} · ${bytes(this.total)}</span></div>`;
  }
}

customElements.define("mt-log", LogView);
