// @ts-check
/** The inbox as one line of notices, in the order of completion, grouped by the turn that told them. */
import { time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { button } from "../core/parts.js";
import { address } from "../core/router.js";
import { WORDS } from "../list/row-texts.js";
import { obstacle } from "../task/actions.js";
import { html, nothing, repeat } from "../vendor/lit.js";

/** @typedef {import("../core/types.js").Notice} Notice */
/**
 * @typedef {object} How
 * @property {any} turn the open turn, or null
 * @property {string} cursor
 * @property {boolean} older there are more
 * @property {() => void} onOlder
 * @property {(notice: Notice) => void} onDeliver
 * @property {(id: string) => void} onCursor
 */

/** @param {Notice} notice */
function deliveryWords(notice) {
  switch (notice.state) {
    case "told":
      return `told · ${time(notice.toldAt)}`;
    case "leased":
      return notice.turnNumber ? `leased to turn ${notice.turnNumber}` : "leased";
    case "parked":
      return `parked, ${notice.attempts} tries`;
    case "muted":
      return "nobody asked";
    default:
      return "unread";
  }
}

/** The words above the first notice of a turn. @param {Notice} notice @param {any} turn */
function turnWords(notice, turn) {
  if (notice.state === "unread") return "Next turn · starts when the agent is idle, or ends its turn";
  const name = `Turn ${notice.turnNumber ?? ""}`;
  if (notice.state !== "leased") return notice.turnNumber ? name : "";
  const since = time(turn?.since ?? notice.leasedAt);
  return `${name}, running${since ? ` since ${since}` : ""} · told when the turn is acknowledged, otherwise given back`;
}

/** @param {Notice} notice */
function turnOf(notice) {
  if (notice.state === "unread") return "next";
  if (notice.state === "parked" || notice.state === "muted") return ""; // it keeps its place in the line
  return `${notice.state === "leased"} ${notice.turnNumber ?? notice.turn ?? ""}`;
}

/** @param {Notice} notice @param {How} how */
const parkedView = (notice, how) =>
  html`<div class="parked">
    ${icon("parked")}
    <p>
      <b dir="auto">${notice.reason || "It could not be delivered."}</b><br />
      <span class="second">Later notices go on; this one keeps its place, and waits for you.</span>
    </p>
    ${button("Deliver again", { icon: "again", key: "d", reason: obstacle(), press: () => how.onDeliver(notice) })}
  </div>`;

/** How the run ended, or the kind of a notice that is not an ending. @param {Notice} notice */
const kindView = (notice) =>
  notice.outcome === null
    ? html`<span class="state">${icon("running")}${notice.kind}</span>`
    : html`<span class="state" data-state=${notice.outcome}>${icon(notice.outcome)}${WORDS[notice.outcome] ?? notice.outcome}</span>`;

/** Endings and events are about a task; a reminder or a message is not. @param {Notice} notice */
export const hasTask = (notice) => notice.kind === "ending" || notice.kind === "event";

/** @param {Notice} notice */
const titleView = (notice) =>
  hasTask(notice)
    ? html`<a class="notice-title" href=${address({ task: notice.task })} dir="auto" title=${notice.text}>${notice.title}</a>`
    : html`<span class="notice-title" dir="auto" title=${notice.text}>${notice.title}</span>`;

/** @param {Notice} notice @param {How} how */
function noticeView(notice, how) {
  const current = notice.id === how.cursor;
  return html`<li
    class="notice"
    data-current=${current ? "" : nothing}
    data-state=${notice.state}
    @click=${() => how.onCursor(notice.id)}
  >
    <span class="notice-number">${notice.number}</span>
    <span class="node" data-state=${notice.state}>${icon(notice.state)}</span>
    ${kindView(notice)}
    ${titleView(notice)}
    <span class="notice-delivery" data-state=${notice.state}>${deliveryWords(notice)}</span>
    <span class="notice-time">${time(notice.endedAt)}</span>
    ${notice.state === "parked" ? parkedView(notice, how) : nothing}
  </li>`;
}

/** @param {Notice[]} notices oldest first @param {How} how */
export function inboxLine(notices, how) {
  let turn = "";
  const lines = notices.map((notice) => {
    const mine = turnOf(notice);
    const words = mine && mine !== turn ? turnWords(notice, how.turn) : "";
    turn = mine || turn;
    return { notice, words };
  });
  return html`<div class="inbox">
    ${how.older ? html`<p class="inbox-older">${button("Earlier notices", { icon: "down", press: how.onOlder })}</p>` : nothing}
    ${notices.length ? nothing : html`<p class="list-note">No notices here. Each task that ends puts one into this line.</p>`}
    <ol>
      ${repeat(
        lines,
        ({ notice }) => notice.id,
        ({ notice, words }) =>
          html`${words ? html`<li class="turn" data-state=${notice.state}><i></i><span>${words}</span></li>` : nothing}${noticeView(notice, how)}`,
      )}
    </ol>
  </div>`;
}
