// @ts-check
/** Requests to the daemon. Every refusal becomes an `ApiError` whose message is a sentence for people. */

const TIMEOUT = 30_000; // ms, for one answer

let token = "";

/** @param {string} given the token of every later request; "" sends none */
export function useToken(given) {
  token = given;
}

export class ApiError extends Error {
  /**
   * @param {number} status 0 if there was no answer
   * @param {string} code
   * @param {string} text
   * @param {string} [hint]
   * @param {Record<string, any>} [body]
   */
  constructor(status, code, text, hint = "", body = {}) {
    super(hint ? `${text} ${hint}` : text);
    this.status = status;
    this.code = code;
    this.body = body;
  }

  /** The token is not good any more, so nothing that is asked again will work. */
  get isFinal() {
    return this.status === 401;
  }
}

/** @returns {Record<string, string>} */
export function authorization() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/**
 * @param {string} path
 * @param {Record<string, string|number|undefined>} [params] those that are undefined are left out
 * @returns {Promise<any>}
 */
export function get(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, String(value));
  return answerTo(query.size ? `${path}?${query}` : path, { headers: authorization() });
}

/**
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export function post(path, body = {}) {
  const headers = { ...authorization(), "Content-Type": "application/json" };
  return answerTo(path, { method: "POST", headers, body: JSON.stringify(body) });
}

/**
 * A path of the API with a task, thread or turn in it.
 * @param {TemplateStringsArray} parts
 * @param {...string} names
 */
export function path(parts, ...names) {
  return String.raw({ raw: parts }, ...names.map(encodeURIComponent));
}

/**
 * @param {string} url
 * @param {RequestInit} request
 */
async function answerTo(url, request) {
  let response;
  try {
    response = await fetch(url, { ...request, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  } catch {
    throw new ApiError(0, "no_answer", "The daemon does not answer.", "Look at `meantime status`, then try again.");
  }
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? null : response.json();
}

/** @param {Response} response */
export async function refusal(response) {
  const body = await response.json().catch(() => ({}));
  const text = body.error || `The daemon answered with status ${response.status}.`;
  return new ApiError(response.status, body.code || "", text, body.hint, body);
}
