// @ts-check
/** Searches with a name, kept by this browser. */
import { ask, sayError } from "../core/announce.js";
import { place } from "../core/router.js";
import { store } from "../core/store.js";

/** @typedef {{name: string, q: string, group: string}} View */

const VIEWS_KEY = "meantime.views";
export const MOST_VIEWS = 20;
export const MOST_NAME = 40; // characters
const MOST_QUERY = 1_000;

/** @param {any} given @returns {given is View} */
const isView = (given) =>
  [given?.name, given?.q, given?.group].every((each) => typeof each === "string") && !problemOf(given.name) && given.q.length <= MOST_QUERY;

/** @type {View[]|null} null: to be read again */
let known = null;
addEventListener("storage", ({ key }) => {
  if (key !== VIEWS_KEY) return;
  known = null; // another tab wrote it
  store.changed();
});

/** The saved views: the same array until one is saved or deleted. */
export const views = () => (known ??= readViews());

/** @returns {View[]} what is there may have been written by anybody: only whole views count */
function readViews() {
  try {
    const kept = JSON.parse(localStorage.getItem(VIEWS_KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isView).slice(0, MOST_VIEWS) : [];
  } catch {
    return [];
  }
}

/** Why a name cannot be taken; "" if it can. @param {string} name */
export function problemOf(name) {
  if (!name.trim()) return "A view needs a name.";
  if (name.length > MOST_NAME) return `A name has at most ${MOST_NAME} characters.`;
  return /[\p{Cc}\p{Cf}]/u.test(name) ? "A name has no control characters." : "";
}

/** @param {View[]} all */
function keep(all) {
  try {
    localStorage.setItem(VIEWS_KEY, JSON.stringify(all));
  } catch {
    sayError("This browser keeps nothing for this page.");
  }
  known = null;
  store.changed(); // the rail shows them
}

/** Keeps a view; one of the same name is replaced. @param {View} view @returns {string} why not, or "" */
export function save(view) {
  const others = views().filter((each) => each.name !== view.name);
  const problem =
    problemOf(view.name) ||
    (view.q.length > MOST_QUERY ? "This search is too long to be kept." : "") ||
    (others.length >= MOST_VIEWS ? `There are ${MOST_VIEWS} views already. Delete one first.` : "");
  if (!problem) keep([...others, view].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })));
  return problem;
}

/** @param {string} name */
export const remove = (name) => keep(views().filter((each) => each.name !== name));

/** Asks for a name, and keeps the search and the grouping of now. */
export async function askAndSave() {
  const { q, group } = place;
  const text = "The search and the groups of now, kept by this browser. A view of the same name is replaced.";
  const given = await ask({ title: "Save this view", text, fields: [{ name: "name", label: "Name", required: true, lines: 1 }], confirm: "Save" });
  const problem = given ? save({ name: given.name.trim(), q, group }) : "";
  if (problem) sayError(problem);
}
