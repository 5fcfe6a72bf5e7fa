// @ts-check
/** Where each line of the list is. Heights are fixed, so any line is found without measuring. */
import { titleOf } from "./grouping.js";

/** @typedef {import("./list-model.js").ListModel} ListModel */
/** @typedef {{group: string, title: string, ids: string[], shown: number, top: number, first: number}} Section */
/** @typedef {{section: Section, id: string, index: number}} Line `id` is "" for the head of a group */

export class ListLayout {
  /**
   * @param {ListModel} model
   * @param {Set<string>} folded names of groups
   * @param {number} row height of a row
   * @param {number} head height of a group's head
   */
  constructor(model, folded, row, head) {
    this.row = row;
    this.head = head;
    this.height = 0;
    this.lines = 0;
    /** @type {Section[]} */
    this.sections = [];
    for (const name of model.groups) {
      const ids = model.order[name];
      if (!ids.length) continue;
      const shown = folded.has(name) ? 0 : ids.length;
      this.sections.push({ group: name, title: titleOf(model.grouping, name), ids, shown, top: this.height, first: this.lines });
      this.height += head + shown * row;
      this.lines += 1 + shown;
    }
  }

  /**
   * The lines between two heights, and the top of the first.
   * @param {number} from
   * @param {number} to
   * @returns {{top: number, lines: Line[]}}
   */
  window(from, to) {
    /** @type {Line[]} */
    const lines = [];
    let top = -1;
    for (const section of this.sections) {
      const bottom = section.top + this.head + section.shown * this.row;
      if (bottom <= from || section.top >= to) continue;
      const body = section.top + this.head;
      const begin = Math.max(0, Math.floor((from - body) / this.row));
      const end = Math.min(section.shown, Math.ceil((to - body) / this.row));
      if (from < body) lines.push({ section, id: "", index: section.first });
      if (top < 0) top = from < body ? section.top : body + begin * this.row;
      for (let i = begin; i < end; i++) lines.push({ section, id: section.ids[i], index: section.first + 1 + i });
    }
    return { top: Math.max(0, top), lines };
  }

  /** @param {string} id @returns {number} its height from the top; -1 if it is not shown */
  topOf(id) {
    for (const { ids, shown, top } of this.sections) {
      const at = shown ? ids.indexOf(id) : -1;
      if (at >= 0) return top + this.head + at * this.row;
    }
    return -1;
  }

  /** The shown ids, in order. */
  ids() {
    return this.sections.flatMap(({ ids, shown }) => (shown ? ids : []));
  }
}
