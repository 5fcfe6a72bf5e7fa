// @ts-check
/** Beside a conversation: who is connected, what it waits for, and its reminder as the agent sees it. */
import { copy } from "../core/announce.js";
import { now } from "../core/clock.js";
import { counted, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { address } from "../core/router.js";
import { store } from "../core/store.js";
import { GROUPS, groupOf, hasEnded, rankOf } from "../list/row-groups.js";
import { progressOf, stateOf, timeOf } from "../list/row-texts.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {import("../core/types.js").Row} Row */

const MOST = 50; // rows
/** @type {Record<string, string>} */
const CLASSES = { A: "exactly once", B: "exactly once", C: "at least once" };

/** @param {any} host */
function hostView(host) {
  const grade = host.delivery ?? host.class ?? "";
  const words = host.connected
    ? html`<span class="live" data-state="live"><i></i>connected</span>`
    : html`<span class="quiet">not connected</span>`;
  return html`<section>
    <h2>
      Connected host
      ${grade ? html`<span class="tag">class ${grade}${CLASSES[grade] ? ` · ${CLASSES[grade]}` : ""}</span>` : nothing}
    </h2>
    <p class="with-icon">${icon("agent")}<b class="strong">${host.name}</b>${words}</p>
    <dl class="facts">
      ${
        host.since
          ? html`<dt>Since</dt>
              <dd>${time(host.since)}</dd>`
          : nothing
      }
      ${
        host.lastTurn
          ? html`<dt>Last turn</dt>
              <dd>${time(host.lastTurn)}</dd>`
          : nothing
      }
    </dl>
  </section>`;
}

/** @param {Row} row */
function waitedView(row) {
  const { icon: name, word } = stateOf(row, now());
  const progress = progressOf(row, now(), false);
  const words = row.state === "running" && row.percent === null ? timeOf(row, now()) : progress.text || timeOf(row, now());
  return html`<li>
    <a class="child" href=${address({ task: row.id })}>
      <span class="state" data-state=${name}>${icon(name, word)}</span><span class="mono">${row.shortId}</span>
      <span class="child-title" dir="auto">${row.title}</span
      ><span class=${row.state === "waiting" ? "warn" : "quiet"}>${words}</span>
    </a>
  </li>`;
}

/** @param {string} thread @param {any} data */
export function threadInspector(thread, data) {
  const hosts = /** @type {any[]} */ (data.hosts ?? []);
  const active = [...store.rows.values()].filter((row) => row.thread === thread && !hasEnded(row));
  const rows = GROUPS.flatMap(({ name }) => active.filter((row) => groupOf(row) === name).sort((a, b) => rankOf(a) - rankOf(b)));
  const reminder = String(data.reminder ?? "");
  const copyButton = html`<button
    class="icon-button"
    aria-label="Copy the reminder"
    @click=${() => copy(reminder, "the reminder")}
  >
    ${icon("copy")}
  </button>`;
  return html`<aside class="inspector" aria-label="About this conversation">
    ${
      hosts.length
        ? hosts.map(hostView)
        : html`<section>
            <h2>Connected host</h2>
            <p class="second">None. Notices wait until an agent takes its next turn.</p>
          </section>`
    }
    <section>
      <h2>It waits for <span class="quiet">${counted(rows.length, "task")}</span></h2>
      <ul>
        ${rows.slice(0, MOST).map(waitedView)}
      </ul>
    </section>
    <section>
      <h2>Reminder, as the agent sees it ${reminder ? copyButton : nothing}</h2>
      ${reminder ? html`<pre class="text" tabindex="0">${reminder}</pre>` : html`<p class="second">Nothing: no task of this conversation is active.</p>`}
      <p class="second">Sent with every turn, never acknowledged. Automatic text: no person approved anything.</p>
    </section>
  </aside>`;
}
