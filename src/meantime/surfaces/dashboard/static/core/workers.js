// @ts-check
/** The workers on other machines, by their last message. A daemon without a carrier has none, and is asked once. */
import { get } from "./api.js";
import { whenIdle } from "./clock.js";
import { store } from "./store.js";

/** @typedef {import("./types.js").Worker} Worker */

const PACE = 10_000; // ms between two looks

/** @type {Worker[]} the same array until the next look */
let heard = [];
let isWatched = false;

export const workers = () => heard;

async function look() {
  try {
    const info = await get("/v1/info");
    if (!info.ownerKey) return;
    if (info.workers.length || heard.length) {
      heard = info.workers;
      store.changed();
    }
  } catch {
    // The banner says that the daemon is away; the next look may find it.
  }
  setTimeout(() => (document.hidden ? addEventListener("visibilitychange", look, { once: true }) : look()), PACE);
}

/** Looks from now on, once the first rows are there. */
export function watchWorkers() {
  if (!isWatched) whenIdle(look);
  isWatched = true;
}
