// @ts-check
/**
 * The page's clock. It ticks once a second while the page is seen, and stops when the stream drops or the page is
 * paused: a time that goes on without news would be a lie.
 */

/** @type {Set<() => void>} */
const tickers = new Set();
let stoppedAt = 0;

/** The time that durations are measured to, in ms. */
export const now = () => stoppedAt || Date.now();

export const isStopped = () => stoppedAt > 0;

/** @param {number} at ms; 0 lets the clock go on */
export function stopAt(at) {
  if (stoppedAt === at) return;
  stoppedAt = at;
  for (const listener of tickers) listener();
}

/**
 * @param {() => void} listener called every second
 * @returns {() => void} ends it
 */
export function onTick(listener) {
  tickers.add(listener);
  return () => tickers.delete(listener);
}

/** After the first rows, which should wait for nothing else. @param {() => void} work */
export const whenIdle = (work) =>
  void ("requestIdleCallback" in window ? requestIdleCallback(work, { timeout: 1_000 }) : setTimeout(work, 300));

setInterval(() => {
  if (document.hidden || stoppedAt) return;
  for (const listener of tickers) listener();
}, 1_000);
