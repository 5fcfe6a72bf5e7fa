// @ts-check
/** Everything that can be done with one task. The daemon says whether it is legal, and why not. */
import { mayWrite } from "../core/access.js";
import { ask, say, sayError } from "../core/announce.js";
import { get, path, post } from "../core/api.js";
import { go } from "../core/router.js";
import { store } from "../core/store.js";

/** @typedef {import("../core/types.js").Task} Task */
/** @typedef {import("../core/types.js").Action} Action */
/** @typedef {Omit<import("../core/dialog.js").Ask, "title">} Form */
/** @typedef {{word: string, icon: string, key?: string, form?: (task: Task) => Form, run: (task: Task, values: Record<string, string>) => Promise<string|void>}} Doing */

const prompt = (/** @type {string} */ label) => ({ fields: [{ name: "prompt", label, required: true }] });

/** @type {Record<string, Doing>} */
export const DOINGS = {
  answer: {
    word: "Answer",
    icon: "waiting",
    key: "a",
    run: async (task) => go({ answer: task.id }),
  },
  cancel: {
    word: "Cancel",
    icon: "stop",
    key: "c",
    form: () => ({
      text: "It is asked to stop. Its conversation is told how it ended.",
      fields: [{ name: "reason", label: "Reason, optional", lines: 1 }],
    }),
    run: async (task, { reason }) => {
      await post(path`/v1/tasks/${task.id}/cancel`, { reason });
      return "It was asked to stop.";
    },
  },
  send: {
    word: "Send",
    icon: "send",
    key: "s",
    form: (task) => ({
      fields: [
        { name: "data", label: task.kind === "agent" ? "Text for the agent" : "Text for its standard input", required: true },
      ],
    }),
    run: async (task, { data }) => {
      const text = task.kind === "agent" || data.endsWith("\n") ? data : `${data}\n`; // commands read lines
      const { sent } = await post(path`/v1/tasks/${task.id}/send`, { data: text });
      return (
        { steered: "It reached the agent in its turn.", queued: "The agent gets it as its next run." }[
          /** @type {string} */ (sent)
        ] ?? "It was written."
      );
    },
  },
  resume: {
    word: "Resume",
    icon: "again",
    key: "r",
    form: (task) =>
      task.kind === "agent"
        ? prompt("What should it do next?")
        : { text: "The same work is run again, as a new run of this task." },
    run: async (task, { prompt = "" }) => {
      await post(path`/v1/tasks/${task.id}/resume`, { prompt });
      return "A new run is on its way.";
    },
  },
  fork: {
    word: "Fork",
    icon: "fork",
    key: "f",
    form: () => ({ text: "A new task goes on from this agent's conversation.", ...prompt("What should the new one do?") }),
    run: async (task, { prompt }) => {
      const forked = await post(path`/v1/tasks/${task.id}/fork`, { prompt });
      go({ task: forked.id });
    },
  },
  promote: {
    word: "Promote",
    icon: "promote",
    run: async (task) => void (await post(path`/v1/tasks/${task.id}/promote`)),
  },
  unpark: {
    word: "Deliver again",
    icon: "again",
    run: async (task) => deliverAgain(task.row.thread, parkedNotices(task)),
  },
  clear: {
    word: "Clear",
    icon: "check",
    form: () => ({ text: "It leaves the lists, and stays in the ledger." }),
    run: async (task) => {
      await post("/v1/clear", { thread: task.row.thread, ids: [task.id] });
      return "It is not listed any more.";
    },
  },
  purge: {
    word: "Purge",
    icon: "trash",
    form: () => ({ text: "It is deleted for good, with its output and its results." }),
    run: async (task) => {
      await post("/v1/purge", { ids: [task.id] });
      go({});
      return "1 task was deleted.";
    },
  },
};

/** Why nothing can be done from this page now; "" if something can. */
export function obstacle() {
  if (!mayWrite()) return "This page may only look. `meantime open` opens one that may act.";
  if (store.status.state !== "live") return "Actions wait for the connection.";
  return "";
}

/** @param {Action} action */
export const reasonAgainst = (action) => (action.legal ? obstacle() : action.reason);

/**
 * Does one thing with a task: asks what is needed, and says what came of it.
 * @param {string} name
 * @param {Task} task
 */
export async function act(name, task) {
  const [doing, action] = [DOINGS[name], task.actions?.find((each) => each.name === name)];
  if (!doing || !action) return sayError(`This daemon does not offer "${name}" for a task.`);
  const reason = reasonAgainst(action);
  if (reason) return sayError(reason);
  try {
    const form = doing.form?.(task);
    const title = `${doing.word}: ${task.row?.title ?? task.id}`;
    const values = form ? await ask({ confirm: doing.word, cli: action.cli, destroys: action.destroys, ...form, title }) : {};
    if (!values) return;
    const said = await doing.run(task, values);
    if (said) say(said);
  } catch (error) {
    sayError(error);
  }
}

/** The same for a row of a list, whose actions are not known yet. @param {string} name @param {string} id */
export async function actOn(name, id) {
  const why = obstacle();
  if (why) return sayError(why);
  try {
    await act(name, await get(path`/v1/tasks/${id}`));
  } catch (error) {
    sayError(error);
  }
}

/** @param {Task} task @returns {string[]} */
export const parkedNotices = (task) =>
  (task.delivery ?? [])
    .filter((/** @type {any} */ each) => each.state === "parked")
    .map((/** @type {any} */ each) => each.id ?? each.notice);

/** @param {string} thread @param {string[]} notices */
export async function deliverAgain(thread, notices) {
  const { unparked } = await post(path`/v1/threads/${thread}/unpark`, { notices });
  return unparked === 1 ? "1 notice will be delivered again." : `${unparked} notices will be delivered again.`;
}
