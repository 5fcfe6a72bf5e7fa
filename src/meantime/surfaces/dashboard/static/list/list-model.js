// @ts-check
/**
 * The order of the list: groups of ids, each sorted. While the order is held, rows change where they are, and
 * what would move or arrive waits; so no row moves under the pointer.
 */
import { matches, parse } from "../core/search-query.js";
import { store } from "../core/store.js";
import { inOrder, spotOf } from "./grouping.js";
import { GROUPS } from "./row-groups.js";

/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {import("./grouping.js").Grouping} Grouping */
/** @typedef {{group: string, rank: number}} Spot */

const MANY = 500; // changes from which sorting anew is cheaper than moving one by one

export class ListModel {
  /** @type {Record<string, string[]>} ids by group; empty groups may be among them */
  order = {};
  /** @type {Grouping} */
  grouping = "state";
  held = false;
  /** @type {Set<string>} ids that wait for the order to be released */
  waiting = new Set();

  /** @type {Map<string, Spot>} */
  #spots = new Map();
  /** @type {Set<string>} ids that the daemon found for this query */
  #found = new Set();
  #terms = parse("");
  /** @type {string[]|null} the groups in their order; null if one was added */
  #groups = null;

  constructor() {
    this.#clear();
  }

  /** @param {string} query */
  setQuery(query) {
    this.#terms = parse(query);
    this.#found = new Set();
    this.#rebuild();
  }

  /** @param {Grouping} grouping */
  groupBy(grouping) {
    if (grouping === this.grouping) return;
    this.grouping = grouping;
    this.#rebuild();
  }

  /** The names of the groups, in their order. */
  get groups() {
    return (this.#groups ??= inOrder(this.grouping, Object.keys(this.order)));
  }

  /** @param {Row[]} rows a page that the daemon found for the query */
  addFound(rows) {
    for (const row of rows) this.#found.add(row.id);
    store.add(rows);
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (this.held && this.#spots.size) {
      for (const id of changed) if (this.#hasMoved(id)) this.waiting.add(id);
    } else if (changed.size > MANY) this.#rebuild();
    else for (const id of changed) this.#move(id);
  }

  /** @param {boolean} held */
  hold(held) {
    if (held === this.held) return;
    this.held = held;
    if (!held) this.release();
  }

  /** Shows what waited, even if the order stays held. */
  release() {
    if (this.waiting.size > MANY) this.#rebuild();
    else for (const id of this.waiting) this.#move(id);
    this.waiting.clear();
  }

  /** How many tasks wait that the list does not show yet. */
  get arrived() {
    let arrived = 0;
    for (const id of this.waiting) if (!this.#spots.has(id)) arrived++;
    return arrived;
  }

  get length() {
    return this.#spots.size;
  }

  /** @param {string} id */
  has(id) {
    return this.#spots.has(id);
  }

  /** @param {string} id @returns {Spot|null} where the task belongs now; null is nowhere */
  #target(id) {
    const row = store.rows.get(id);
    if (!row || !matches(this.#terms, row, this.#found.has(id))) return null;
    return spotOf(this.grouping, row);
  }

  /** @param {string} id */
  #hasMoved(id) {
    const [is, was] = [this.#target(id), this.#spots.get(id)];
    return is?.group !== was?.group || is?.rank !== was?.rank;
  }

  /** @param {string} id */
  #move(id) {
    if (!this.#hasMoved(id)) return;
    const [is, was] = [this.#target(id), this.#spots.get(id)];
    if (was) this.order[was.group].splice(this.order[was.group].indexOf(id), 1);
    this.#spots.delete(id);
    if (!is) return;
    const ids = this.#groupOf(is.group);
    let [low, high] = [0, ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#isBefore(ids[middle], id, is.rank)) low = middle + 1;
      else high = middle;
    }
    ids.splice(low, 0, id);
    this.#spots.set(id, is);
  }

  /** @param {string} group @returns {string[]} its ids; it is made if it is new */
  #groupOf(group) {
    if (!this.order[group]) this.#groups = null;
    return (this.order[group] ??= []);
  }

  #clear() {
    this.order = Object.create(null); // a conversation may be called "constructor"
    this.#groups = null;
    if (this.grouping === "state") for (const { name } of GROUPS) this.order[name] = [];
  }

  /** @param {string} other @param {string} id @param {number} rank */
  #isBefore(other, id, rank) {
    const before = this.#spots.get(other)?.rank ?? 0;
    return before < rank || (before === rank && other < id);
  }

  #rebuild() {
    this.waiting.clear();
    this.#spots.clear();
    this.#clear();
    for (const id of store.rows.keys()) {
      const spot = this.#target(id);
      if (!spot) continue;
      this.#spots.set(id, spot);
      this.#groupOf(spot.group).push(id);
    }
    const rank = (/** @type {string} */ id) => this.#spots.get(id)?.rank ?? 0;
    for (const ids of Object.values(this.order)) ids.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  }
}
