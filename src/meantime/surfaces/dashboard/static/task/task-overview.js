// @ts-check
/** The tabs "overview" and "raw" of a task. */
import { copy } from "../core/announce.js";
import { count, time } from "../core/format.js";
import { button } from "../core/parts.js";
import { address } from "../core/router.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {import("../core/types.js").Task} Task */
/** @typedef {import("../core/types.js").Row} Row */

const LONGEST = 200_000; // characters of one text; the result's own route, and its file, have the rest

/** @param {string} title @param {string|null|undefined} text @param {string} [tone] */
function textView(title, text, tone = "") {
  if (!text) return nothing;
  return html`<section>
    <h2>${title} <button class="link" @click=${() => copy(text, title.toLowerCase())}>copy</button></h2>
    <pre class="text" data-tone=${tone || nothing} dir="auto" tabindex="0">${text.slice(0, LONGEST)}</pre>
    ${text.length > LONGEST ? html`<p class="warn">The first ${count(LONGEST)} of ${count(text.length)} characters.</p>` : nothing}
  </section>`;
}

/** What the input of such work is called. @param {string} kind */
export const inputWord = (kind) => ({ shell: "Command", agent: "Prompt" })[kind] ?? "Input";

/** @param {unknown} value */
const asText = (value) =>
  typeof value === "string" || value === null || value === undefined ? value : JSON.stringify(value, null, 2);

/** @param {Task} task @param {Row} row */
export function overviewTab(task, row) {
  const file = task.outputFile
    ? html`<dt>Whole text</dt>
        <dd class="mono">${task.outputFile}</dd>`
    : nothing;
  return html`<div class="overview">
    ${
      row.question
        ? html`<section class="asks">
            <h2>It needs you</h2>
            <p dir="auto">${row.question.text}</p>
            <a class="button" data-tone="primary" href=${address({ answer: row.id })}>Answer<kbd>a</kbd></a>
          </section>`
        : nothing
    }
    ${textView("Result", asText(task.result))} ${textView("Error", task.errorDetail || task.error, "bad")}
    ${row.kind === "shell" && task.error ? html`<p><a class="button" href=${address({ task: row.id, tab: "log" })}>See what it printed<kbd>3</kbd></a></p>` : nothing}
    ${textView(inputWord(row.kind), task.prompt || task.description)} ${textView("Follow-up, its next run", task.followUp)}
    <section>
      <h2>Facts</h2>
      <dl class="facts">
        <dt>Id</dt>
        <dd class="mono">${task.id}</dd>
        <dt>Asked</dt>
        <dd>${time(task.createdAt)}</dd>
        ${
          task.worker
            ? html`<dt>Runs on</dt>
                <dd dir="auto">${task.worker}</dd>`
            : nothing
        }
        ${
          task.place
            ? html`<dt>Workers of</dt>
                <dd dir="auto">${task.place}</dd>`
            : nothing
        }
        ${
          task.startedAt && row.startedAt
            ? html`<dt>Started</dt>
                <dd>${time(task.startedAt)}</dd>`
            : nothing
        }
        ${
          task.completedAt
            ? html`<dt>Ended</dt>
                <dd>${time(task.completedAt)}</dd>`
            : nothing
        }
        ${
          row.timeoutAt && !task.completedAt
            ? html`<dt>Time limit</dt>
                <dd>${time(row.timeoutAt)}</dd>`
            : nothing
        }
        ${
          task.exitCode !== null && task.exitCode !== undefined
            ? html`<dt>Exit code</dt>
                <dd class=${task.exitCode ? "bad" : nothing}>${task.exitCode}</dd>`
            : nothing
        }
        ${
          task.toolCallID
            ? html`<dt>Tool call</dt>
                <dd class="mono">${task.toolCallID}</dd>`
            : nothing
        }
        ${file}
      </dl>
    </section>
  </div>`;
}

/** @param {Task} task */
export function rawTab(task) {
  const text = JSON.stringify(task, null, 2);
  return html`<div class="overview">
    <p>${button("Copy", { icon: "copy", press: () => copy(text, "the task as JSON") })}</p>
    <pre class="text" tabindex="0">${text.slice(0, LONGEST)}</pre>
  </div>`;
}
