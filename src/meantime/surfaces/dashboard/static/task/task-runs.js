// @ts-check
/** The tab "runs": the task as each of its runs left it. */
import { get, path } from "../core/api.js";
import { PageElement } from "../core/element.js";
import { cut, duration, ms, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { WORDS } from "../list/row-texts.js";
import { html } from "../vendor/lit.js";

class Runs extends PageElement {
  static properties = { task: {}, run: {}, runs: { state: true }, error: { state: true } };

  constructor() {
    super();
    this.task = "";
    this.run = 0;
    /** @type {any[]|null} */
    this.runs = null;
    this.error = "";
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("task") || changed.has("run")) this.look();
  }

  async look() {
    try {
      this.runs = (await get(path`/v1/tasks/${this.task}/runs`)).runs;
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {any} run @param {number} index */
  runView(run, index) {
    const length = run.duration ?? (run.completedAt ? ms(run.completedAt) - ms(run.startedAt) : null);
    return html`<tr>
      <td>${index + 1}</td>
      <td><span class="state" data-state=${run.state}>${icon(run.state)}${WORDS[run.state] ?? run.state}</span></td>
      <td>${time(run.startedAt)}</td>
      <td>${time(run.completedAt)}</td>
      <td class="number">${length === null ? "" : duration(length, true)}</td>
      <td class="wide" dir="auto">${cut(String(run.error ?? run.result ?? ""), 300)}</td>
    </tr>`;
  }

  render() {
    if (this.error) return html`<p class="list-note bad" role="alert">${this.error}</p>`;
    if (!this.runs) return html`<p class="list-note" role="status">Looking …</p>`;
    return html`<table class="table">
      <thead>
        <tr>
          ${["Run", "Status", "Started", "Ended", "Time", "Outcome"].map((name) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${this.runs.map((run, index) => this.runView(run, index))}
      </tbody>
    </table>`;
  }
}

customElements.define("mt-runs", Runs);
