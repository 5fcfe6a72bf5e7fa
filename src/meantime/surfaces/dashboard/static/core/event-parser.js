// @ts-check
/** Server-sent events from a fetched stream. EventSource cannot send a token, and reconnects blindly. */

const LONGEST_EVENT = 64 << 20; // characters of one event; a bounded snapshot is far below

/** @typedef {{event: string, id: string, data: string}} ServerEvent */

export class EventParser {
  #rest = "";
  #event = "";
  #id = "";
  /** @type {string[]} */
  #data = [];
  #size = 0;

  /**
   * @param {string} text the next piece of the stream, cut anywhere
   * @returns {ServerEvent[]} the events that it completes
   */
  push(text) {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length + this.#size > LONGEST_EVENT) throw new Error(`An event is longer than ${LONGEST_EVENT} characters.`);
    const events = [];
    for (const line of lines) {
      const event = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) events.push(event);
    }
    return events;
  }

  /** @param {string} line */
  #line(line) {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.#event = value;
    else if (name === "id") this.#id = value;
    else if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    }
    return null;
  }

  #finish() {
    const data = this.#data.join("\n");
    const event = { event: this.#event || "message", id: this.#id, data };
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return data ? event : null;
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} onBytes called for every piece, so that silence can be noticed
 */
export async function* eventsOf(body, onBytes) {
  const parser = new EventParser();
  const [reader, decoder] = [body.getReader(), new TextDecoder()];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    yield* parser.push(decoder.decode(value, { stream: true }));
  }
}
