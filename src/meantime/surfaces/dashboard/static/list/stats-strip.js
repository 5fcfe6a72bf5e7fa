// @ts-check
/** The overview strip: what ran in the last hour, and how it went. */
import { PageElement } from "../core/element.js";
import { count, duration, percent } from "../core/format.js";
import { store } from "../core/store.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {import("../core/types.js").Overview} Overview */

/** Sixty bars; the last one is now. @param {number[]} values */
function spark(values) {
  const peak = Math.max(1, ...values);
  const bars = values.slice(-60).map((value, at) => {
    const height = value ? Math.max(2, (24 * value) / peak) : 1;
    return `M${at * 4} 24v${-height}h3v${height}z`;
  });
  return html`<svg
    class="spark"
    viewBox="0 0 240 24"
    preserveAspectRatio="none"
    role="img"
    aria-label="Running tasks, minute by minute"
  >
    <path d=${bars.slice(0, -1).join("")} /><path d=${bars.at(-1) ?? ""} data-now=${values.at(-1) ? "" : nothing} />
  </svg>`;
}

/** @param {string} label @param {unknown} value @param {unknown} [note] @param {string} [title] what it counts, in full */
const stat = (label, value, note, title) =>
  html`<div class="stat" title=${title ?? nothing}>
    <span>${label}</span>
    <p><b>${value}</b> ${note ?? nothing}</p>
  </div>`;

/** @param {number|null|undefined} value ms */
const length = (value) => (value === null || value === undefined ? "—" : duration(value, value < 10_000));

class StatsStrip extends PageElement {
  listen() {
    return [store.subscribe(() => this.requestUpdate())];
  }

  /** Rendered anew only when the overview is new. */
  shouldUpdate() {
    const changed = this.shown !== store.overview;
    this.shown = store.overview;
    return changed || !this.hasUpdated;
  }

  /** @type {Overview|null|undefined} */
  shown;

  render() {
    const view = store.overview;
    if (!view) return html`<section class="stats" aria-label="Overview"></section>`;
    const { running60, failedLastHour: failed, late, slots } = view;
    return html`<section class="stats" aria-label="Overview">
      <div class="stat-running">
        <p>Running <b>${count((view.counts.running ?? 0) + (view.counts.cancelling ?? 0))}</b></p>
        <span>last 60 min, peak ${count(Math.max(0, ...running60))}</span>
      </div>
      ${spark(running60)} ${stat("Duration p50", length(view.p50Ms))} ${stat("Duration p95", length(view.p95Ms))}
      ${stat("Failed, last hour", percent(failed.failed, failed.total), failed.total ? `${count(failed.failed)} of ${count(failed.total)}` : nothing)}
      ${stat("Not told after 1 min", late.total ? count(late.lateOrParked) : "—", late.total ? `of ${count(late.total)} endings` : nothing, "Endings that no conversation was told of within a minute, and those that delivery gave up on (parked)")}
      ${stat("Slots", slots.total && slots.total > 0 ? `${count(slots.used)} of ${count(slots.total)}` : count(slots.used), slots.queued ? `${count(slots.queued)} queued` : nothing)}
    </section>`;
  }
}

customElements.define("mt-stats", StatsStrip);
