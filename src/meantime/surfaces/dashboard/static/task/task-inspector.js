// @ts-check
/** Beside a task: whether its conversation was told, its budget, its family, and its commands. */
import { duration, count, ms, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { bar, button, commandLine } from "../core/parts.js";
import { address } from "../core/router.js";
import { print, term } from "../core/search-query.js";
import { now } from "../core/clock.js";
import { hasEnded } from "../list/row-groups.js";
import { WORDS } from "../list/row-texts.js";
import { html, nothing } from "../vendor/lit.js";
import { act, obstacle } from "./actions.js";

/** @typedef {import("../core/types.js").Task} Task */
/** @typedef {import("../core/types.js").Row} Row */

/** How the delivery of one run stands, in a sentence. @param {any} notice @param {string} thread */
export function deliveryWords(notice, thread) {
  const turn = notice.turnNumber ? ` · turn ${notice.turnNumber}` : "";
  switch (notice.state) {
    case "told":
      return `told once${turn} · ${time(notice.toldAt ?? notice.at)}`;
    case "leased":
      return `leased to ${thread}${turn}; told when the turn is acknowledged`;
    case "parked":
      return `parked after ${notice.attempts ?? "several"} tries`;
    case "muted":
      return "nobody asked to be told";
    default:
      return `unread; told with the next turn of ${thread}`;
  }
}

/** @param {Task} task @param {Row} row */
function deliveryView(task, row) {
  const notices = /** @type {any[]} */ (Array.isArray(task.delivery) ? task.delivery : []);
  return html`<section>
    <h2>
      Delivery ${row.delivery?.number ? html`<span class="quiet">notice ${row.delivery.number} of ${row.thread}</span>` : nothing}
    </h2>
    ${
      hasEnded(row)
        ? nothing
        : row.notify
          ? html`<p class="with-icon strong">${icon("mail")}Will be told to ${row.thread}</p>
              <p class="second">Once, at the end of a turn, when this run has ended.</p>`
          : html`<p class="with-icon strong">${icon("muted")}Nobody will be told</p>
              <p class="second">Its ending is recorded here. It was started without a conversation to tell.</p>`
    }
    ${notices.map(
      (notice) =>
        html`<p class="with-icon delivery" data-state=${notice.state}>
            ${icon(notice.state)}<b>${notices.length > 1 ? `run ${notice.run}: ` : ""}${deliveryWords(notice, row.thread)}</b>
          </p>
          ${
            notice.state === "parked"
              ? html`<p class="warn">${notice.reason}</p>
                  ${button("Deliver again", { icon: "again", reason: obstacle(), press: () => act("unpark", task) })}`
              : nothing
          }`,
    )}
  </section>`;
}

/** @type {Record<string, (value: number) => string>} */
const UNITS = { seconds: (value) => duration(value * 1_000), cost: (value) => `$${value.toFixed(2)}` };

/** @param {{name: string, used: number, limit: number|null}} entry */
function budgetLine({ name, used, limit }) {
  const show = UNITS[name] ?? count;
  const label = name === "seconds" ? "time" : name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`); // toolCalls
  return html`<div class="budget">
    <span class="capital">${label}</span><span><b>${show(used)}</b>${limit ? ` of ${show(limit)}` : ""}</span>
    ${limit ? bar(used / limit) : nothing}
  </div>`;
}

/** @param {Task} task @param {Row} row */
function budgetView(task, row) {
  const entries = /** @type {any[]} */ (task.budget ?? []).filter(
    ({ name, used, limit }) => limit || (used && name !== "seconds"),
  );
  const lines = entries.map(budgetLine);
  const usual = row.usualMs ? usualWords(row) : "";
  if (!lines.length && !usual) return nothing;
  return html`<section>
    <h2>Budget</h2>
    ${lines}${usual ? html`<p class="second">${usual}</p>` : nothing}
  </section>`;
}

/** @param {Row} row */
function usualWords(row) {
  const ratio = hasEnded(row) || !row.startedAt || !row.usualMs ? 0 : (now() - ms(row.startedAt)) / row.usualMs;
  const slower = ratio >= 1.5 ? `; ${ratio.toFixed(1).replace(".0", "")}× slower than usual` : "";
  return `usually ${duration(row.usualMs ?? 0, true)}, from ${count(row.usualRuns)} runs of ${row.agent || row.kind}${slower}`;
}

/** @param {Task} task @param {Row} row */
function familyView(task, row) {
  const { parent = null, children = [], batch = null } = task.family ?? {};
  const parentId = parent?.id ?? parent;
  const batchId = batch?.id ?? batch ?? row.batch;
  return html`<section>
    <h2>
      Family
      ${batchId ? html`<a class="quiet" href=${address({ q: print([term("batch", batchId)]) })}>batch ${batchId}${batch?.total ? `, ${batch.ended} of ${batch.total}` : ""}</a>` : nothing}
    </h2>
    <dl class="facts">
      <dt>Conversation</dt>
      <dd><a href=${address({ thread: row.thread })} dir="auto">${row.thread}</a></dd>
      ${
        parentId
          ? html`<dt>Parent</dt>
              <dd><a class="mono" href=${address({ task: parentId })}>${parent?.title ?? parentId}</a></dd>`
          : nothing
      }
      ${children.length ? html`<dt>Children</dt>` : nothing}
      ${children.map(
        (/** @type {any} */ child) =>
          html`<dd>
            <a class="child" href=${address({ task: child.id })}
              ><span class="state" data-state=${child.state} title=${WORDS[child.state]}
                >${icon(child.state, WORDS[child.state])}</span
              ><span dir="auto">${child.title}</span></a
            >
          </dd>`,
      )}
    </dl>
  </section>`;
}

/** @param {Task} task @param {Row} row */
export function inspector(task, row) {
  const legal = (task.actions ?? []).filter((action) => action.legal).map((action) => action.cli);
  return html`<aside class="inspector" aria-label="About this task">
    ${deliveryView(task, row)} ${budgetView(task, row)} ${familyView(task, row)}
    <section>
      <h2>Command line</h2>
      ${[`meantime show ${row.shortId}`, ...legal].map((command) => commandLine(command))}
    </section>
  </aside>`;
}
