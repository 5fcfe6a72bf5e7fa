/** A windowed list of the rows of a stream, and nothing else: no groups, no filters, no selection, no keys. */
import { fill, headers, makeRow } from "./cells.js";

const ROW = 32;
const AHEAD = 8;
const rows = new Map();
let order = [];
let planned = false;
const scroll = document.querySelector("#scroll");
const canvas = document.querySelector("#canvas");
const pool = [];

function draw() {
  planned = false;
  if (order.length !== rows.size) order = [...rows.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1)).map((row) => row.id);
  canvas.style.height = `${order.length * ROW}px`;
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - AHEAD);
  const last = Math.min(order.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + AHEAD);
  const now = Date.now();
  for (let at = first; at < last; at++) {
    const element = (pool[at - first] ??= canvas.appendChild(makeRow()));
    const top = `translateY(${at * ROW}px)`;
    if (element.style.transform !== top) element.style.transform = top;
    fill(element, rows.get(order[at]), now);
  }
}

function plan() {
  if (!planned) requestAnimationFrame(draw);
  planned = true;
}

function take(text) {
  const [event, data] = [/^event: (.*)$/m.exec(text)?.[1], /^data: (.*)$/m.exec(text)?.[1]];
  if (event !== "snapshot" && event !== "patch") return;
  for (const row of JSON.parse(data).rows) rows.set(row.id, row);
  document.documentElement.dataset.rows = String(rows.size);
  plan();
}

scroll.addEventListener("scroll", plan);
setInterval(plan, 1_000);
const { body } = await fetch("/v1/events?format=patches", { headers });
const reader = body.pipeThrough(new TextDecoderStream()).getReader();
let rest = "";
for (;;) {
  const { done, value } = await reader.read();
  if (done) break;
  const parts = (rest + value).split("\n\n");
  rest = parts.pop();
  parts.forEach(take);
}
