// @ts-check
/**
 * All that the page knows: rows by id, and the overview. Changes are collected and told once per animation frame, so
 * 200 updates a second cost one rendering a frame, and a hidden tab, which has no frames, renders nothing.
 */

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Overview} Overview */
/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").Patch} Patch */
/** @typedef {import("./stream.js").Status} Status */

export const MOST_ROWS = 20_000; // rows in memory; the search finds the rest

export class Store {
  /** @type {Map<string, Row>} */
  rows = new Map();
  /** @type {Overview|null} */
  overview = null;
  seq = 0;
  /** @type {Status} */
  status = { state: "connecting", since: Date.now(), retryAt: 0, reason: "" };
  epoch = 0; // grows with every snapshot: pages that were loaded before it are gone

  /** @type {Set<(changed: Set<string>) => void>} */
  #listeners = new Set();
  /** @type {Set<(before: Row|undefined, after: Row) => void>} */
  #watchers = new Set();
  /** @type {Set<(overview: Overview) => void>} */
  #overviewWatchers = new Set();
  /** @type {Set<string>} */
  #changed = new Set();
  #planned = false;
  /** @type {{rows: Map<string, Row|null>, snapshot: Snapshot|null, overview: Overview|null, seq: number}|null} */
  #held = null;

  /**
   * @param {(changed: Set<string>) => void} listener gets the ids that changed since the last frame
   * @returns {() => void} ends it
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The same for those who show little of it: most frames bring rows only.
   * @param {() => unknown[]} shown what the listener shows
   * @param {() => void} listener called in the frames in which that changed
   */
  subscribeTo(shown, listener) {
    /** @type {unknown[]} */
    let last = [];
    return this.subscribe(() => {
      const now = shown();
      if (now.length === last.length && now.every((value, at) => value === last[at])) return;
      last = now;
      listener();
    });
  }

  /**
   * @param {(before: Row|undefined, after: Row) => void} watcher gets every patched row at once, even when the tab is
   *   hidden or the page is paused
   */
  watch(watcher) {
    this.#watchers.add(watcher);
  }

  /** @param {(overview: Overview) => void} watcher gets every overview at once, in the same way */
  watchOverview(watcher) {
    this.#overviewWatchers.add(watcher);
  }

  /** @param {Overview|undefined} overview */
  #see(overview) {
    if (overview) for (const watcher of this.#overviewWatchers) watcher(overview);
  }

  /** @param {Snapshot} snapshot */
  replace(snapshot) {
    this.#see(snapshot.overview);
    if (this.#held) {
      this.#held = { rows: new Map(), snapshot, overview: null, seq: snapshot.seq };
      return this.changed();
    }
    for (const id of this.rows.keys()) this.#changed.add(id);
    this.rows = new Map(snapshot.rows.map((row) => [row.id, row]));
    this.overview = snapshot.overview;
    this.seq = snapshot.seq;
    this.epoch++;
    this.changed(this.rows.keys());
  }

  /** @param {Patch} patch */
  patch(patch) {
    this.#see(patch.overview);
    for (const row of patch.rows) for (const watcher of this.#watchers) watcher(this.rows.get(row.id), row);
    if (this.#held) {
      for (const row of patch.rows) this.#held.rows.set(row.id, row);
      for (const id of patch.gone) this.#held.rows.set(id, null);
      this.#held.overview = patch.overview ?? this.#held.overview;
      this.#held.seq = patch.seq;
      return this.changed();
    }
    for (const id of patch.gone) this.rows.delete(id);
    this.add(patch.rows);
    this.overview = patch.overview ?? this.overview;
    this.seq = patch.seq;
    this.changed(patch.gone);
  }

  /** @param {Row[]} rows of a patch, or of a page that was asked for */
  add(rows) {
    for (const row of rows) {
      if (this.rows.size < MOST_ROWS || this.rows.has(row.id)) this.rows.set(row.id, row);
    }
    this.changed(rows.map((row) => row.id));
  }

  /** @param {Status} status */
  setStatus(status) {
    this.status = status;
    this.changed();
  }

  /** @returns {Snapshot|null} for a tab that joins */
  current() {
    if (!this.overview) return null;
    return { rows: [...this.rows.values()], overview: this.overview, seq: this.seq };
  }

  get isPaused() {
    return this.#held !== null;
  }

  /** How many rows changed since the pause began. */
  get missed() {
    return this.#held ? this.#held.rows.size + (this.#held.snapshot?.rows.length ?? 0) : 0;
  }

  pause() {
    this.#held ??= { rows: new Map(), snapshot: null, overview: null, seq: this.seq };
    this.changed();
  }

  resume() {
    const held = this.#held;
    if (!held) return;
    this.#held = null;
    if (held.snapshot) this.replace(held.snapshot);
    for (const [id, row] of held.rows) row ? this.add([row]) : this.rows.delete(id);
    this.overview = held.overview ?? this.overview;
    this.seq = held.seq;
    this.changed(held.rows.keys());
  }

  /** Tells the listeners in the next frame. @param {Iterable<string>} [ids] */
  changed(ids = []) {
    for (const id of ids) this.#changed.add(id);
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => {
      this.#planned = false;
      const changed = this.#changed;
      this.#changed = new Set();
      for (const listener of this.#listeners) listener(changed);
    });
  }
}

export const store = new Store();
