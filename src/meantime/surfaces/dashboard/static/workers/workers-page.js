// @ts-check
/** The workers on other machines: where tasks with a place run. */
import { PageElement } from "../core/element.js";
import { count, duration } from "../core/format.js";
import { commandLine } from "../core/parts.js";
import { store } from "../core/store.js";
import { watchWorkers, workers } from "../core/workers.js";
import { html } from "../vendor/lit.js";

const COLUMNS = ["Worker", "Host", "Pool", "Running", "Slots", "Version", "Last heard"];

class WorkersPage extends PageElement {
  /** Its keys, as keys.js names them. */
  get view() {
    return "workers";
  }

  listen() {
    watchWorkers();
    return [store.subscribeTo(() => [workers()], () => this.requestUpdate())];
  }

  /** @param {import("../core/types.js").Worker} worker */
  workerView(worker) {
    const heard = `${duration(worker.silent * 1_000)} ago${worker.draining ? ", takes no more work" : ""}`;
    return html`<tr>
      <th scope="row" dir="auto">${worker.name}</th>
      <td dir="auto">${worker.host}</td>
      <td dir="auto">${worker.pool}</td>
      <td>${count(worker.running)}</td>
      <td>${count(worker.slots)}</td>
      <td>${worker.version}</td>
      <td>${heard}</td>
    </tr>`;
  }

  render() {
    const all = workers();
    return html`<main id="page" class="workers" tabindex="-1">
      <h1>Workers</h1>
      <p class="second">Processes on other machines. A task with <code>place</code> runs on one of its pool; its row names it.</p>
      ${
        all.length
          ? html`<div class="table-scroll" tabindex="0" role="region" aria-label="Workers">
              <table class="table">
                <thead>
                  <tr>
                    ${COLUMNS.map((name) => html`<th scope="col">${name}</th>`)}
                  </tr>
                </thead>
                <tbody>
                  ${all.map((worker) => this.workerView(worker))}
                </tbody>
              </table>
            </div>`
          : html`<p role="status">No worker was heard of.</p>`
      }
      <h2>Command line</h2>
      ${commandLine("meantime workers")}
    </main>`;
  }
}

customElements.define("mt-workers-page", WorkersPage);
