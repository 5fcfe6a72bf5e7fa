// @ts-check
/** What can be done with the selection, or with everything that matches. Every count is named before it is done. */
import { ApiError, get, post } from "../core/api.js";
import { ask, say, sayError } from "../core/announce.js";
import { count, counted } from "../core/format.js";
import { button } from "../core/parts.js";
import { valueOf, withTerm } from "../core/search-query.js";
import { store } from "../core/store.js";
import { obstacle } from "../task/actions.js";
import { html, nothing } from "../vendor/lit.js";
import { hasEnded } from "./row-groups.js";

/** @typedef {"cancel"|"clear"|"purge"} BulkName */

/** @type {Record<BulkName, {word: string, icon: string, key?: string, ended: boolean, destroys: boolean, says: string}>} */
const BULK = {
  cancel: {
    word: "Cancel",
    icon: "stop",
    key: "c",
    ended: false,
    destroys: true,
    says: "They are asked to stop. Their conversations are told.",
  },
  clear: { word: "Clear", icon: "check", ended: true, destroys: false, says: "They leave the lists, and stay in the ledger." },
  purge: {
    word: "Purge",
    icon: "trash",
    ended: true,
    destroys: true,
    says: "They are deleted for good, with their output and results.",
  },
};

/** @param {Set<string>} selection @param {boolean} ended */
export function idsFor(selection, ended) {
  return [...selection].filter((id) => {
    const row = store.rows.get(id);
    return row && hasEnded(row) === ended;
  });
}

/**
 * @param {Set<string>} selection
 * @param {{matching: boolean, query: string, total: number}} all everything that matches is meant, not the selection
 * @param {{clear: () => void, all: () => void}} on
 */
export function bulkBar(selection, all, on) {
  const names = /** @type {BulkName[]} */ (Object.keys(BULK));
  return html`<div class="bulk" role="toolbar" aria-label="Selected tasks">
    <b>${all.matching ? `All ${count(all.total)} that match` : `${count(selection.size)} selected`}</b>
    ${!all.matching && all.total > selection.size ? html`<button class="link" @click=${on.all}>Select all ${count(all.total)} that match</button>` : nothing}
    <span class="spring"></span>
    ${names.map((name) => {
      const { word, icon, key, ended } = BULK[name];
      const number = idsFor(selection, ended).length;
      const none = !all.matching && !number ? `None of the selected tasks ${ended ? "has ended" : "is active"}.` : "";
      const label = all.matching ? `${word} all` : number ? `${word} ${count(number)}` : word;
      return button(label, {
        icon,
        key,
        reason: obstacle() || none,
        press: () => bulk(name, selection, all).then((done) => done && on.clear()),
      });
    })}
    ${button("Leave", { key: "esc", press: on.clear })}
  </div>`;
}

/**
 * Asks, then does it. The daemon refuses if the number changed meanwhile; then it is asked again with the new one.
 * @param {BulkName} name
 * @param {Set<string>} selection
 * @param {{matching: boolean, query: string}} all
 * @returns {Promise<boolean>} whether it was done
 */
export async function bulk(name, selection, { matching, query }) {
  const why = obstacle();
  if (why) return (sayError(why), false);
  const { word, ended, destroys, says } = BULK[name];
  const ids = idsFor(selection, ended);
  const q = valueOf(query, "status") ? query : withTerm(query, "status", ...(ended ? ["ended"] : ["waiting", "queued", "running"]));
  try {
    let expect = matching ? (await get("/v1/tasks", { format: "rows", limit: 1, q })).total : ids.length;
    for (let changed = ""; ;) {
      if (!expect) return (sayError(`There is nothing to ${name}.`), false);
      const title = `${word} ${counted(expect, "task")}?`;
      if (!(await ask({ title, text: changed + says, confirm: `${word} ${count(expect)}`, destroys }))) return false;
      try {
        const answer = await post("/v1/tasks/bulk", { action: name, expect, ...(matching ? { q } : { ids }) });
        report(word, answer);
        return true;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "count_changed") throw error;
        expect = Number(error.body.count ?? error.body.matched ?? 0);
        changed = "The number has changed meanwhile. ";
      }
    }
  } catch (error) {
    sayError(error);
    return false;
  }
}

/** @param {string} word @param {{done: number, matched: number, refused: {reason: string}[]}} answer */
function report(word, { done, refused }) {
  const not = refused.length ? ` ${counted(refused.length, "was", "were")} refused: ${refused[0].reason}` : "";
  say(`${word}: ${counted(done, "task")}.${not}`);
}
