// @ts-check
/**
 * Runs before all else: takes the code out of the address, asks for the page's right, and opens the stream, so that the
 * first rows are on their way while the other modules load.
 */
import { access, forget, open, takeFragment } from "./access.js";
import { store } from "./store.js";
import { Stream } from "./stream.js";

export const fragment = takeFragment();

/** @type {Stream|null} the right to answer one question has none */
export let stream = null;

/** Settled when the page knows what it may do; app.js says why if it may not. */
export const opening = open(fragment.code).then(connect);
opening.catch(() => {});

function connect() {
  if (access.question) return;
  stream = new Stream(access.thread ?? "", {
    onSnapshot: (snapshot) => store.replace(snapshot),
    onPatch: (patch) => store.patch(patch),
    onStatus: (status) => {
      if (status.state === "refused") forget();
      store.setStatus(status);
    },
    current: () => store.current(),
  });
  stream.start();
}
