// @ts-check
/** Asks the daemon for the rows that the stream does not bring: those of a search, and older ones while one scrolls. */
import { ApiError, get } from "../core/api.js";
import { MOST_ROWS, store } from "../core/store.js";

/** @typedef {import("./list-model.js").ListModel} ListModel */

const PAGE = 200; // rows

export class PageLoader {
  error = "";
  total = 0;
  exact = true;
  /** @type {"idle"|"loading"|"done"} */
  state = "idle";
  #query = "";
  #cursor = "";
  #asked = 0;

  /** @param {ListModel} model @param {() => void} onChange */
  constructor(model, onChange) {
    this.model = model;
    this.onChange = onChange;
  }

  /** @param {string} query */
  start(query) {
    this.#query = query;
    this.#cursor = "";
    this.#asked++;
    this.error = "";
    this.total = 0;
    this.state = "idle";
    this.model.setQuery(query);
    if (query) this.more();
  }

  /** The next page, unless it is under way, or there is none. */
  async more() {
    if (this.state !== "idle" || store.rows.size >= MOST_ROWS || store.status.state !== "live") return;
    const asked = ++this.#asked;
    this.state = "loading";
    try {
      const params = { format: "rows", limit: PAGE, q: this.#query || undefined, cursor: this.#cursor || undefined };
      const page = await get("/v1/tasks", params);
      if (asked !== this.#asked) return;
      this.total = page.total;
      this.exact = page.totalExact !== false;
      this.#cursor = page.cursor ?? "";
      this.state = this.#cursor ? "idle" : "done";
      this.model.addFound(page.rows);
    } catch (error) {
      if (asked !== this.#asked) return;
      this.error = error instanceof ApiError ? error.message : String(error);
      this.state = "done"; // until the search changes, or the next snapshot
    }
    this.onChange();
  }
}
