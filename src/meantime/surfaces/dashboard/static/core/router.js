// @ts-check
/** Where the page is, as its address says: `/?q=status:failed`, `/?task=t_2qxz&tab=log`, `/?thread=conv-7`. */

/**
 * @typedef {object} Place
 * @property {string} q the search
 * @property {string} task an open task
 * @property {string} thread an open conversation
 * @property {string} answer a task whose question is open; "next" is the most urgent
 * @property {string} tab of a task or a conversation
 * @property {string} workers "all" if the workers are shown
 * @property {string} group what the list is grouped by; "" is the state
 */

const NAMES = /** @type {const} */ (["q", "task", "thread", "answer", "tab", "group", "workers"]);

/** @type {Set<() => void>} */
const listeners = new Set();

/** @type {Place} */
export let place = read();

/** @returns {Place} */
function read() {
  const given = new URLSearchParams(location.search);
  const [q, task, thread, answer, tab, group, workers] = NAMES.map((name) => given.get(name) ?? "");
  return { q, task, thread, answer, tab, group, workers };
}

/**
 * @param {Partial<Place>} change what is not named is left out, but for the search and the groups, which stay
 * @returns {string} the address
 */
export function address(change) {
  const all = { q: place.q, group: place.group, ...change };
  const query = NAMES.filter((name) => all[name]).map((name) => `${name}=${readable(all[name] ?? "")}`);
  return query.length ? `/?${query.join("&")}` : "/";
}

/** Escaped, but with the colons and commas of a search left as they are. @param {string} value */
const readable = (value) => encodeURIComponent(value).replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%20/g, "+");

/**
 * @param {Partial<Place>} change
 * @param {boolean} [replace] without a new entry in the history, as for each letter of a search
 */
export function go(change, replace = false) {
  const to = address(change);
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  arrive();
}

/** @param {string} path what `meantime open` asks for: /tasks/ID or /threads/ID */
export function goTo(path) {
  const [, kind, id] = /^\/(tasks|threads)\/([^/]+)$/.exec(path) ?? [];
  if (kind) go(kind === "tasks" ? { task: decodeURIComponent(id) } : { thread: decodeURIComponent(id) }, true);
}

/** @param {() => void} listener @returns {() => void} ends it */
export function onPlace(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function arrive() {
  place = read();
  for (const listener of listeners) listener();
}

addEventListener("popstate", arrive);

// Links of the page are followed without loading it again; with a modifier they open a tab, as everywhere.
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element && event.target.closest("a[href^='/?'], a[href='/']");
  if (!link) return;
  event.preventDefault();
  const to = link.getAttribute("href") ?? "/";
  if (to === location.pathname + location.search) return;
  history.pushState(null, "", to);
  arrive();
});
