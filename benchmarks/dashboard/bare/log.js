/** The last lines of a log in a <pre>, with the height of all of them: no colours, no numbers, no search. */
import { headers } from "./cells.js";

const ROW = 20;
const AHEAD = 10;
const lines = [""];
let planned = false;
const scroll = document.querySelector("#scroll");
const canvas = document.querySelector("#canvas");
const pre = document.querySelector("#lines");
const escapes = /\x1b\[[0-9;]*m/g;

function draw() {
  planned = false;
  canvas.style.height = `${lines.length * ROW}px`;
  scroll.scrollTop = scroll.scrollHeight;
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - AHEAD);
  pre.style.transform = `translateY(${first * ROW}px)`;
  pre.textContent = lines.slice(first, first + Math.ceil(scroll.clientHeight / ROW) + 2 * AHEAD).join("\n").replace(escapes, "");
  document.documentElement.dataset.lines = String(lines.length);
}

function take(chunk) {
  const bytes = Uint8Array.from(atob(chunk.dataBase64), (letter) => letter.charCodeAt(0));
  const parts = new TextDecoder().decode(bytes).split("\n");
  lines[lines.length - 1] += parts[0];
  for (let at = 1; at < parts.length; at++) lines.push(parts[at]);
  if (!planned) requestAnimationFrame(draw);
  planned = true;
}

const task = new URLSearchParams(location.search).get("task");
const { body } = await fetch(`/v1/tasks/${task}/output?follow=1&format=chunks&stream=both&offset=0`, { headers });
const reader = body.pipeThrough(new TextDecoderStream()).getReader();
let rest = "";
for (;;) {
  const { done, value } = await reader.read();
  if (done) break;
  const parts = (rest + value).split("\n");
  rest = parts.pop();
  for (const part of parts) if (part) take(JSON.parse(part));
}
