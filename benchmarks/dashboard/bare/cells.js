/** What a row of the dashboard shows, as plain text. */

/** @param {number} ms */
const clock = (ms) => `${Math.floor(ms / 60_000)}m ${Math.floor((ms / 1_000) % 60)}s`;

export function cellsOf(row, now) {
  const began = Date.parse(row.startedAt ?? row.createdAt);
  const until = row.endedAt ? Date.parse(row.endedAt) : now;
  const progress = row.percent === null ? "" : `${Math.round(row.percent)} %`;
  return [row.state, row.shortId, row.title, `${row.kind} ${row.agent}`, row.now, progress, row.thread, clock(until - began)];
}

export function makeRow() {
  const element = document.createElement("div");
  element.className = "row";
  for (let n = 0; n < 8; n++) element.append(document.createElement("span"));
  return element;
}

export function fill(element, row, now) {
  const cells = cellsOf(row, now);
  for (let n = 0; n < cells.length; n++) {
    const cell = element.children[n];
    if (cell.textContent !== cells[n]) cell.textContent = cells[n];
  }
}

/** The token of the page: the neighbour exchanges no code. */
export const headers = { Authorization: `Bearer ${location.hash.slice(1)}` };
