// @ts-check
/** Follows the output of a task: one JSON object a line, with offsets, so that a broken connection goes on where it was. */
import { ApiError, authorization, path, refusal } from "../core/api.js";

const FIRST_WAIT = 500; // ms before the first try to connect again
const LONGEST_WAIT = 10_000;
const LONGEST_LINE = 8 << 20; // characters; a piece has at most a megabyte of bytes

/**
 * @typedef {object} Heard
 * @property {(text: string) => void} text
 * @property {(lost: number) => void} gap
 * @property {(total: number) => void} total bytes so far
 * @property {() => void} ended there is no more
 * @property {(error: Error|null) => void} trouble null when it is over
 */

export class LogStream {
  /** @param {string} task @param {string} stream both, stdout or stderr @param {Heard} heard */
  constructor(task, stream, heard) {
    this.task = task;
    this.stream = stream;
    this.heard = heard;
    this.next = 0;
    this.decoder = new TextDecoder();
    this.stopping = new AbortController();
  }

  /** Reads until the task has ended or `stop` is called. */
  async run() {
    let wait = FIRST_WAIT;
    while (!this.stopping.signal.aborted) {
      try {
        if (await this.#once(() => (wait = FIRST_WAIT))) return this.heard.ended();
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        const problem = error instanceof Error ? error : new Error(String(error));
        this.heard.trouble(problem);
        if (problem instanceof ApiError && problem.status >= 400 && problem.status < 500) return;
      }
      await pause(wait * (0.75 + Math.random() / 2), this.stopping.signal);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  stop() {
    this.stopping.abort();
  }

  /**
   * @param {() => void} connected
   * @returns {Promise<boolean>} whether everything was read: a server that closes aborts the response instead
   */
  async #once(connected) {
    const query = new URLSearchParams({ follow: "1", format: "chunks", stream: this.stream, offset: String(this.next) });
    const url = `${path`/v1/tasks/${this.task}/output`}?${query}`;
    const response = await fetch(url, { headers: authorization(), cache: "no-store", signal: this.stopping.signal });
    if (!response.ok || !response.body) throw await refusal(response);
    connected();
    this.heard.trouble(null);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > LONGEST_LINE) throw new Error("The daemon sent a line that is too long.");
      for (const line of lines) if (line) this.#take(JSON.parse(line));
    }
  }

  /** @param {{dataBase64: string, offset: number, next: number, total: number, lostBytes: number}} chunk */
  #take(chunk) {
    if (chunk.lostBytes > 0) {
      this.heard.text(this.decoder.decode()); // half a character before a gap is not completed after it
      this.heard.gap(chunk.lostBytes);
    }
    const data = Uint8Array.from(atob(chunk.dataBase64), (letter) => letter.charCodeAt(0));
    const text = this.decoder.decode(data, { stream: true });
    if (text) this.heard.text(text);
    this.next = chunk.next;
    this.heard.total(chunk.total);
  }
}

/** @param {number} time ms @param {AbortSignal} signal */
function pause(time, signal) {
  return new Promise((resolve) => {
    const over = setTimeout(resolve, time);
    signal.addEventListener("abort", () => (clearTimeout(over), resolve(undefined)), { once: true });
  });
}
