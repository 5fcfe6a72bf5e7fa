// @ts-check
/** One row of the list, as markup. On narrow screens the same cells are laid out on two lines. */
import { styles } from "../core/element.js";
import { icon } from "../core/icons.js";
import { address } from "../core/router.js";
import { html, nothing } from "../vendor/lit.js";
import { hasEnded } from "./row-groups.js";
import { kindIcon, kindOf, nowOf, progressOf, stateOf, timeOf } from "./row-texts.js";

/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {import("./row-texts.js").Progress} Progress */

/** @param {Row} row @param {number} now */
export function stateMark(row, now) {
  const { icon: name, word } = stateOf(row, now);
  return html`<span class="state" data-state=${name}>${icon(name)}<span>${word}</span></span>`;
}

/** @param {Progress} progress */
export function progressMark({ look, part, text }) {
  if (look === "none") return html`<span class="row-words">${text}</span>`;
  return html`<span class="bar" data-look=${look}><i ${styles({ width: `${(part * 100).toFixed(1)}%` })}></i></span>
    <span class="row-words" data-look=${look}>${text}</span>`;
}

/** Whether the conversation was told. @param {Row} row */
export function deliveryMark(row) {
  if (!hasEnded(row) || !row.delivery) return html`${row.thread}`;
  const { state, reason } = row.delivery;
  return html`<span class="delivery" data-state=${state} title=${reason ?? nothing}>${icon(state)}<b>${state}</b></span> ·
    ${row.thread}`;
}

/** What it does or did last; the exit code of a command that failed is red. @param {Row} row @param {number} now */
function nowMark(row, now) {
  const exit = `exit ${row.exitCode} · `;
  if (row.state !== "failed" || !row.now.startsWith(exit)) return nowOf(row, now);
  return html`<span class="bad">exit ${row.exitCode}</span> · ${row.now.slice(exit.length)}`;
}

/**
 * @param {Row} row
 * @param {object} shown
 * @param {number} shown.now
 * @param {boolean} shown.stopped
 * @param {boolean} shown.current
 * @param {boolean} shown.selected
 * @param {number} shown.index of the line, from 1, as screen readers count
 */
export function rowView(row, { now, stopped, current, selected, index }) {
  const clock = stopped && !hasEnded(row);
  return html`<div
    class="row"
    role="row"
    id="row-${row.id}"
    data-id=${row.id}
    data-group=${row.state === "waiting" ? "needs" : nothing}
    data-current=${current ? "" : nothing}
    aria-selected=${selected}
    aria-rowindex=${index}
  >
    <span class="row-check" role="gridcell"
      ><input type="checkbox" tabindex="-1" data-select aria-label="Select ${row.title}" .checked=${selected}
    /></span>
    <span class="row-state" role="gridcell">${stateMark(row, now)}</span>
    <span class="row-id mono" role="gridcell">${row.shortId}</span>
    <span class="row-title" role="gridcell"
      ><a href=${address({ task: row.id })} tabindex="-1" dir="auto" title=${row.title}>${row.title}</a></span
    >
    <span class="row-kind" role="gridcell">${icon(kindIcon(row))}<span>${kindOf(row)}</span></span>
    <span class="row-now" role="gridcell" dir="auto">${nowMark(row, now)}</span>
    <span class="row-progress" role="gridcell">${progressMark(progressOf(row, now, stopped))}</span>
    <span class="row-thread" role="gridcell">${deliveryMark(row)}</span>
    <span class="row-time" role="gridcell">${clock ? icon("pause", "clock stopped") : nothing}${timeOf(row, now)}</span>
  </div>`;
}
