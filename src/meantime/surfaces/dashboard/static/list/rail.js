// @ts-check
/** The rail: counts that are filters, conversations, and batches with bars. On narrow screens it is a row of chips. */
import { PageElement, styles } from "../core/element.js";
import { count, counted } from "../core/format.js";
import { icon } from "../core/icons.js";
import { address, onPlace, place } from "../core/router.js";
import { valueOf, withTerm } from "../core/search-query.js";
import { store } from "../core/store.js";
import { watchWorkers, workers } from "../core/workers.js";
import { remove, views } from "./saved-views.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {import("../core/types.js").ThreadCounts} ThreadCounts */
/** @typedef {import("../core/types.js").BatchCounts} BatchCounts */

/** @type {{status: string, title: string, icon: string}[]} */
export const FILTERS = [
  { status: "", title: "All", icon: "all" },
  { status: "waiting", title: "Needs you", icon: "waiting" },
  { status: "running,cancelling", title: "Running", icon: "running" },
  { status: "queued", title: "Queued", icon: "queued" },
  { status: "completed", title: "Completed", icon: "completed" },
  { status: "failed", title: "Failed", icon: "failed" },
  { status: "cancelled", title: "Cancelled", icon: "cancelled" },
  { status: "timed_out", title: "Timed out", icon: "timed_out" },
  { status: "lost", title: "Lost", icon: "lost" },
];

/** How many tasks a filter has, over all. @param {string} status */
export function countOf(status) {
  const counts = store.overview?.counts ?? {};
  if (!status) return counts.all ?? 0;
  return status.split(",").reduce((sum, each) => sum + (counts[each] ?? 0), 0);
}

class Rail extends PageElement {
  listen() {
    watchWorkers();
    return [store.subscribeTo(() => [store.overview, views(), workers()], () => this.requestUpdate()), onPlace(() => this.requestUpdate())];
  }

  /** @param {typeof FILTERS[number]} filter */
  filterView(filter) {
    const open = !place.thread && !place.task && !place.answer && valueOf(place.q, "status") === filter.status;
    const value = countOf(filter.status);
    return html`<li>
      <a
        class="rail-item"
        href=${address({ q: withTerm(place.q, "status", ...filter.status.split(",").filter(Boolean)) })}
        aria-current=${open ? "page" : nothing}
      >
        <span class="state" data-state=${filter.icon}>${icon(filter.icon)}</span><span class="rail-name">${filter.title}</span>
        <span class="rail-count" data-tone=${filter.status === "waiting" && value ? "warn" : nothing}>${count(value)}</span>
      </a>
    </li>`;
  }

  /** @param {ThreadCounts} thread */
  threadView(thread) {
    return html`<li>
      <a class="rail-item" href=${address({ thread: thread.id })} aria-current=${place.thread === thread.id ? "page" : nothing}>
        ${icon("conversation")}<span class="rail-name" dir="auto" title=${thread.id}>${thread.id}</span>
        ${thread.parked ? html`<span class="rail-note warn">${icon("parked")}${count(thread.parked)} parked</span>` : nothing}
        <span class="rail-count" aria-label="${thread.active} active">${thread.active ? count(thread.active) : ""}</span>
        <span class="rail-unread"
          >${thread.unread ? html`<b aria-label="${thread.unread} unread">${count(thread.unread)}</b>` : nothing}</span
        >
      </a>
    </li>`;
  }

  /** @param {BatchCounts} batch */
  batchView(batch) {
    const [done, failed] = [batch.done, batch.failed].map((part) => `${((100 * part) / Math.max(1, batch.total)).toFixed(1)}%`);
    return html`<li>
      <a
        class="rail-item rail-batch"
        href=${address({ q: withTerm(place.q, "batch", batch.id) })}
        aria-current=${valueOf(place.q, "batch") === batch.id ? "page" : nothing}
      >
        ${icon("batch")}<span class="rail-name" dir="auto" title=${batch.id}>${batch.id}</span>
        ${batch.failed ? html`<span class="rail-note bad">${icon("failed")}${count(batch.failed)} failed</span>` : nothing}
        <span class="rail-count">${count(batch.done + batch.failed)}/${count(batch.total)}</span>
        <span class="batch-bar"><i ${styles({ width: done })}></i><i ${styles({ width: failed })}></i></span>
      </a>
    </li>`;
  }

  /** Where tasks run beside this machine: only where there are any. */
  workersView() {
    const all = workers();
    if (!all.length) return nothing;
    const [running, slots] = [all.reduce((sum, one) => sum + one.running, 0), all.reduce((sum, one) => sum + one.slots, 0)];
    return html`<h2 class="rail-head" id="rail-workers">Workers <span class="quiet">running / slots</span></h2>
      <ul class="rail-list" aria-labelledby="rail-workers">
        <li>
          <a class="rail-item" href=${address({ workers: "all" })}>
            ${icon("mcp")}<span class="rail-name">${counted(all.length, "worker")}</span>
            <span class="rail-count">${count(running)}/${count(slots)}</span>
          </a>
        </li>
      </ul>`;
  }

  /** @param {import("./saved-views.js").View} view */
  viewView(view) {
    const open = !place.thread && !place.task && !place.answer && place.q === view.q && place.group === view.group;
    return html`<li class="rail-view">
      <a class="rail-item" href=${address({ q: view.q, group: view.group })} aria-current=${open ? "page" : nothing}>
        ${icon("search")}<span class="rail-name" dir="auto" title=${view.q || "all tasks"}>${view.name}</span>
      </a>
      <button class="icon-button" aria-label="Delete the view ${view.name}" title="Delete" @click=${() => remove(view.name)}>
        ${icon("trash")}
      </button>
    </li>`;
  }

  render() {
    const saved = views();
    const { threads = [], batches = [] } = store.overview ?? {};
    return html`<nav class="rail" aria-label="Filters, conversations and batches">
      <ul class="rail-filters">
        ${FILTERS.map((filter) => this.filterView(filter))}
      </ul>
      ${
        saved.length
          ? html`<h2 class="rail-head" id="rail-views">Views</h2>
              <ul class="rail-list" aria-labelledby="rail-views">
                ${saved.map((view) => this.viewView(view))}
              </ul>`
          : nothing
      }
      <h2 class="rail-head" id="rail-conversations">
        Conversations <span class="quiet">${threads.length ? "active · unread" : nothing}</span>
      </h2>
      <ul class="rail-list" aria-labelledby="rail-conversations">
        ${threads.length ? threads.map((thread) => this.threadView(thread)) : html`<li class="rail-none">None yet</li>`}
      </ul>
      <h2 class="rail-head" id="rail-batches">Batches</h2>
      <ul class="rail-list" aria-labelledby="rail-batches">
        ${batches.length ? batches.map((batch) => this.batchView(batch)) : html`<li class="rail-none">None yet</li>`}
      </ul>
      ${this.workersView()}
    </nav>`;
  }
}

customElements.define("mt-rail", Rail);
