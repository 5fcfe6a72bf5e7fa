// @ts-check
/**
 * The page's right to ask. `meantime open` puts a one-time code into the fragment; it is exchanged once for a token,
 * which lives in this tab's sessionStorage. Another tab of the same browser gets the token over a BroadcastChannel.
 */
import { ApiError, get, post, useToken } from "./api.js";

/** @typedef {import("./types.js").Access} Access */

const TOKEN_KEY = "meantime.token";
const CHANNEL = "meantime.token";
const OTHER_TABS = 1_000; // ms that another tab has to answer: on a busy machine 250 were too few

/** @type {Access} */
export let access = { id: null, access: "read", thread: null, question: null, expiresAt: null };

/** Whether this page may change anything. */
export const mayWrite = () => access.access === "write";

/**
 * Takes the code out of the address bar before anything else happens.
 * @returns {{code: string, go: string}}
 */
export function takeFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code") ?? "";
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return { code, go: code ? (given.get("go") ?? "") : "" };
}

/**
 * Gets a token from the code, this tab or another tab, and asks what it may do.
 * @param {string} code
 * @returns {Promise<Access>} raises an ApiError if the page may not ask
 */
export async function open(code) {
  const exchanged = code ? await post("/v1/codes/exchange", { code }) : null;
  const token = exchanged?.token ?? sessionStorage.getItem(TOKEN_KEY) ?? (await fromAnotherTab());
  useToken(token);
  try {
    access = exchanged ?? (await get("/v1/access"));
  } catch (error) {
    if (error instanceof ApiError && error.isFinal) forget();
    throw error;
  }
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  answerOtherTabs(token);
  return access;
}

/** A token that is revoked or expired is not kept, and not handed on. */
export function forget() {
  sessionStorage.removeItem(TOKEN_KEY);
  channel?.close();
  channel = null;
}

/** @type {BroadcastChannel|null} */
let channel = null;

/** @param {string} token */
function answerOtherTabs(token) {
  if (!token) return;
  channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }) => {
    if (data?.kind === "ask") channel?.postMessage({ kind: "token", token });
  };
}

/** @returns {Promise<string>} "" if no tab answers in time */
function fromAnotherTab() {
  const asking = new BroadcastChannel(CHANNEL);
  return new Promise((resolve) => {
    const over = setTimeout(() => done(""), OTHER_TABS);
    /** @param {string} token */
    const done = (token) => {
      clearTimeout(over);
      asking.close();
      resolve(token);
    };
    asking.onmessage = ({ data }) => {
      if (data?.kind === "token" && typeof data.token === "string") done(data.token);
    };
    asking.postMessage({ kind: "ask" });
  });
}
