// @ts-check
/** What reaches a person who looks elsewhere: the tab's title and icon, and browser notifications if they want them. */
import { whenIdle } from "./clock.js";
import { go } from "./router.js";
import { store } from "./store.js";

/** @typedef {import("./types.js").Row} Row */

const NOTIFY_KEY = "meantime.notify";
const ALL = "*";
const MOST_CONVERSATIONS = 200;
const OVER = ["completed", "failed", "cancelled", "timed_out", "lost"];

/** @returns {string[]} conversations, or ["*"] */
function wanted() {
  try {
    const kept = JSON.parse(localStorage.getItem(NOTIFY_KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** @param {string} [thread] a conversation; all of them, if there is none */
export const notifies = (thread = ALL) => wanted().some((each) => each === thread || each === ALL);

/**
 * @param {string} [thread]
 * @returns {Promise<string>} what is true now, as a sentence
 */
export async function toggleNotify(thread = ALL) {
  const name = thread === ALL ? "all conversations" : thread;
  const others = wanted().filter((each) => each !== thread);
  if (wanted().includes(thread)) {
    localStorage.setItem(NOTIFY_KEY, JSON.stringify(others));
    return `Browser notifications for ${name} are off.`;
  }
  if (!("Notification" in window)) return "This browser has no notifications.";
  if ((await Notification.requestPermission()) !== "granted")
    return "The browser does not allow notifications for this page. Allow them beside its address.";
  localStorage.setItem(NOTIFY_KEY, JSON.stringify([thread, ...others].slice(0, MOST_CONVERSATIONS)));
  return `Browser notifications for ${name} are on.`;
}

/** @param {Row|undefined} before @param {Row} after */
function notifyOf(before, after) {
  if (before?.state === after.state || !notifies(after.thread)) return;
  if (after.state === "waiting")
    show(`Needs you: ${after.title}`, after.question?.text ?? after.now, () => go({ answer: after.id }), after.id);
  else if (before && OVER.includes(after.state))
    show(`${after.state.replace("_", " ")}: ${after.title}`, after.now, () => go({ task: after.id }), after.id);
}

/** @param {string} title @param {string} body @param {() => void} press @param {string} tag */
function show(title, body, press, tag) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(title.slice(0, 120), { body: body.slice(0, 240), tag });
  shown.onclick = () => {
    window.focus();
    press();
    shown.close();
  };
}

let marked = -1;

/** @param {number} needs */
function mark(needs) {
  if (needs === marked) return;
  marked = needs;
  document.title = needs ? `(${needs}) Meantime` : "Meantime";
  const dot = needs ? `<circle cx="12" cy="4" r="4" fill="#efb54c"/>` : "";
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#17171c"/><path d="M4 5h5M6 8h6.5M4 11h4" stroke="#fff" stroke-width="2" stroke-linecap="round"/>${dot}</svg>`;
  const link = /** @type {HTMLLinkElement|null} */ (document.querySelector("link[rel=icon]"));
  if (link) link.href = `data:image/svg+xml,${encodeURIComponent(picture)}`;
}

/** @param {() => boolean} leads whether this tab reads the stream: one tab of a browser notifies, not all */
export function watchAttention(leads) {
  store.watch((before, after) => leads() && notifyOf(before, after));
  store.watchOverview((overview) => mark(overview.counts.waiting ?? 0));
  whenIdle(() => mark(store.overview?.counts.waiting ?? 0)); // the snapshot may have come before
}
