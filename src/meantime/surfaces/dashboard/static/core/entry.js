// @ts-check
/** Runs before all else: takes the code out of the address, and asks for the page's right while other modules load. */
import { open, takeFragment } from "./access.js";

export const fragment = takeFragment();

/** Settled when the page knows what it may do; app.js says why if it may not. */
export const opening = open(fragment.code);
opening.catch(() => {});
