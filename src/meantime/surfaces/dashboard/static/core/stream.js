// @ts-check
/**
 * One stream for each browser. A browser allows six connections to a host, so a seventh tab with a stream of its own
 * would stall. The tab that holds the lock reads the stream, and passes everything on to the other tabs. When it
 * closes, the next tab gets the lock and reads on from the last event id.
 */
import { ApiError, authorization, refusal } from "./api.js";
import { eventsOf } from "./event-parser.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").Patch} Patch */
/**
 * @typedef {object} Status
 * @property {"connecting"|"live"|"disconnected"|"refused"} state
 * @property {number} since ms; when it was last heard of, if it is disconnected
 * @property {number} retryAt ms; 0 if nothing is planned
 * @property {string} reason
 */
/**
 * @typedef {object} Listener
 * @property {(snapshot: Snapshot) => void} onSnapshot
 * @property {(patch: Patch) => void} onPatch
 * @property {(status: Status) => void} onStatus
 * @property {() => Snapshot|null} current all that this tab knows, for a tab that joins
 */

const NAME = "meantime.stream";
const SILENCE = 25_000; // ms; a heartbeat comes after ten seconds of silence
const LEADER_GONE = 40_000; // ms without a word from the leader, which may be frozen
const BACK_OFF = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000]; // ms, before jitter

export class Stream {
  #lastId = "";
  /** @type {Status} */
  #status = { state: "connecting", since: Date.now(), retryAt: 0, reason: "" };
  #leads = false;
  #joined = false; // this tab has a snapshot
  #isOver = false; // its token was refused
  #heard = Date.now();
  #wake = () => {};
  /** @type {BroadcastChannel|null} */
  #channel = null;

  /**
   * @param {string} scope tabs whose tokens see different things do not share a stream
   * @param {Listener} listener
   */
  constructor(scope, listener) {
    this.scope = scope;
    this.listener = listener;
  }

  get leads() {
    return this.#leads;
  }

  start() {
    if (!navigator.locks) return void this.#lead(); // a page that is not on loopback and has no TLS
    this.#channel = new BroadcastChannel(`${NAME} ${this.scope}`);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    this.#channel.postMessage({ kind: "join" });
    this.#queue(false);
    setInterval(() => this.#watchLeader(), LEADER_GONE / 4);
  }

  /** Connects now instead of after the back-off. */
  retry() {
    if (this.#leads) this.#wake();
    else this.#channel?.postMessage({ kind: "retry" });
  }

  /** @param {boolean} steal */
  #queue(steal) {
    navigator.locks
      .request(`${NAME} ${this.scope}`, { steal }, () => this.#lead())
      .catch(() => {
        this.#leads = false; // another tab took the lock: this one was frozen
        this.#wake();
        this.#queue(false);
      });
  }

  #watchLeader() {
    if (this.#leads || this.#isOver || Date.now() - this.#heard < LEADER_GONE) return;
    this.#heard = Date.now();
    this.#queue(true);
  }

  /** @param {{kind: string, [field: string]: any}} message from another tab */
  #hear(message) {
    if (this.#leads) {
      if (message.kind === "retry") this.#wake();
      if (message.kind === "join") this.#welcome();
      return;
    }
    this.#heard = Date.now();
    if (message.kind === "status") this.#tell(message.status);
    if (message.kind === "welcome" && !this.#joined) this.#take({ ...message, kind: "snapshot" });
    if (message.kind === "snapshot" || message.kind === "patch") this.#take(message);
  }

  #welcome() {
    const data = this.listener.current();
    if (data) this.#send({ kind: "welcome", id: this.#lastId, data });
    this.#send({ kind: "status", status: this.#status });
  }

  /** @param {object} message */
  #send(message) {
    this.#channel?.postMessage(message);
  }

  /** @param {any} message */
  #take({ kind, id, data }) {
    if (kind === "patch" && !this.#joined) return; // its snapshot is on the way
    this.#lastId = id || this.#lastId;
    this.#joined = true;
    if (kind === "snapshot") this.listener.onSnapshot(data);
    else this.listener.onPatch(data);
  }

  /** @param {Status} status */
  #tell(status) {
    this.#status = status;
    this.listener.onStatus(status);
  }

  /** @param {Partial<Status>} change */
  #report(change) {
    this.#tell({ ...this.#status, retryAt: 0, reason: "", ...change });
    this.#send({ kind: "status", status: this.#status });
  }

  /** Reads for all tabs, until this one is closed or refused. */
  async #lead() {
    this.#leads = true;
    for (let failures = 0; this.#leads; failures++) {
      let heard = this.#status.state === "disconnected" ? this.#status.since : Date.now();
      let reason = "The daemon closed the stream.";
      try {
        await this.#read(() => {
          heard = Date.now();
          failures = 0;
        });
      } catch (error) {
        if (error instanceof ApiError && error.isFinal) return this.#leave(heard, error.message);
        reason = error instanceof ApiError ? error.message : "The daemon does not answer.";
      }
      if (!this.#leads) return;
      const wait = BACK_OFF[Math.min(failures, BACK_OFF.length - 1)] * (0.75 + Math.random() / 2);
      this.#report({ state: "disconnected", since: heard, retryAt: Date.now() + wait, reason });
      await this.#pause(wait);
    }
  }

  /** This tab's token is not good any more. Others may have one that is, so the lock goes to the next of them. */
  #leave(/** @type {number} */ since, /** @type {string} */ reason) {
    this.#leads = false;
    this.#isOver = true;
    this.#channel?.close();
    this.#tell({ state: "refused", since, retryAt: 0, reason });
  }

  /** @param {number} ms */
  #pause(ms) {
    return new Promise((resolve) => {
      const over = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(over);
        resolve(undefined);
      };
    });
  }

  /** @param {() => void} onBytes */
  async #read(onBytes) {
    const stop = new AbortController();
    this.#wake = () => stop.abort();
    let silence = setTimeout(() => stop.abort(), SILENCE);
    const alive = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE);
      onBytes();
    };
    try {
      /** @type {Record<string, string>} */
      const headers = { ...authorization(), Accept: "text/event-stream" };
      if (this.#lastId && this.#joined) headers["Last-Event-ID"] = this.#lastId;
      const request = { headers, signal: stop.signal, cache: /** @type {const} */ ("no-store") };
      const response = await fetch("/v1/events?format=patches", request);
      if (!response.ok || !response.body) throw await refusal(response);
      for await (const event of eventsOf(response.body, alive)) this.#relay(event);
    } finally {
      clearTimeout(silence);
      stop.abort();
      this.#wake = () => {};
    }
  }

  /** @param {import("./event-parser.js").ServerEvent} event */
  #relay({ event, id, data }) {
    if (this.#status.state !== "live") this.#report({ state: "live", since: Date.now() });
    if (event === "heartbeat") return this.#send({ kind: "heartbeat" });
    if (event === "resync") {
      this.#lastId = ""; // a snapshot follows
      return;
    }
    if (event !== "snapshot" && event !== "patch") return;
    const message = { kind: event, id, data: JSON.parse(data) };
    this.#take(message);
    this.#send(message);
  }
}
