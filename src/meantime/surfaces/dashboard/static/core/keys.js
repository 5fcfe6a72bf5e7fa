// @ts-check
/** Every key of the page, in one place. The footer and the help are printed from these tables. */

/**
 * @typedef {object} Key
 * @property {string} press as KeyboardEvent.key says it, or "Ctrl+Enter"
 * @property {string} command
 * @property {string} [label] the footer prints it; several keys with one label are printed together
 * @property {string} [help] the help says it, if it differs from the label
 */

/** @type {Key[]} */
const EVERYWHERE = [
  { press: "/", command: "search", label: "search" },
  { press: ".", command: "pause", label: "pause" },
  { press: "?", command: "help", label: "all keys" },
  { press: "g", command: "list", help: "all tasks" },
  { press: "n", command: "needs", help: "what needs you" },
  { press: "W", command: "workers", help: "workers on other machines" },
  { press: "t", command: "theme", help: "light, dark or as the system has it" },
  { press: "R", command: "retry", help: "connect again now" },
];

/** @type {Key[]} */
const ACTIONS = [
  { press: "c", command: "cancel", label: "cancel" },
  { press: "a", command: "answer", label: "answer" },
  { press: "r", command: "resume", label: "resume" },
  { press: "f", command: "fork", label: "fork" },
  { press: "s", command: "send", help: "send text to it" },
  { press: "y", command: "copy", help: "copy its id" },
];

/** @type {Key[]} */
const MOVES = [
  { press: "j", command: "next", label: "move" },
  { press: "k", command: "previous", label: "move" },
  { press: "ArrowDown", command: "next" },
  { press: "ArrowUp", command: "previous" },
  { press: "Enter", command: "open", label: "open" },
];

/** @type {Key[]} */
const TASK = [
  ...[1, 2, 3, 4, 5, 6].map((n) => ({ press: String(n), command: `tab${n}`, label: "tab" })),
  { press: "j", command: "next", help: "next task" },
  { press: "k", command: "previous", help: "previous task" },
  ...ACTIONS.map((key) => (key.help ? { ...key, label: key.command === "copy" ? "copy id" : key.command } : key)),
  { press: "Escape", command: "escape", label: "back" },
  ...EVERYWHERE,
];

/** @type {Key[]} */
const LOG = [
  { press: "/", command: "find", label: "search log" },
  { press: "n", command: "hitNext", label: "next, previous" },
  { press: "N", command: "hitPrevious", label: "next, previous" },
  { press: "e", command: "failure", label: "first failure" },
  { press: "g", command: "start", label: "start, end" },
  { press: "G", command: "end", label: "start, end" },
  { press: "w", command: "wrap", label: "wrap" },
  { press: "D", command: "download", label: "download" },
];

/** @type {Key[]} */
const TIMELINE = [
  { press: "ArrowUp", command: "spanPrevious", label: "call" },
  { press: "ArrowDown", command: "spanNext", label: "call" },
  { press: "ArrowLeft", command: "spanClose", label: "fold" },
  { press: "ArrowRight", command: "spanOpen", label: "fold" },
  { press: "+", command: "zoomIn", label: "zoom" },
  { press: "-", command: "zoomOut", label: "zoom" },
  { press: "0", command: "zoomFit", label: "zoom" },
];

/** @type {Record<string, Key[]>} of each view; of two with one key the first holds */
export const MAPS = {
  list: [
    ...MOVES,
    { press: "x", command: "select", label: "select" },
    { press: "X", command: "selectTo", help: "select up to here" },
    { press: "Home", command: "first", help: "first task" },
    { press: "End", command: "last", help: "last task" },
    { press: "PageDown", command: "pageDown", help: "a page down" },
    { press: "PageUp", command: "pageUp", help: "a page up" },
    ...ACTIONS,
    { press: "o", command: "release", help: "show the new order" },
    { press: "v", command: "group", help: "group by the next" },
    { press: "V", command: "saveView", help: "save this view" },
    { press: "Escape", command: "escape", help: "leave the selection, the list or the search" },
    ...EVERYWHERE,
  ],
  empty: [
    { press: "1", command: "copy1", label: "copy a command" },
    { press: "2", command: "copy2", label: "copy a command" },
    { press: "3", command: "copy3", label: "copy a command" },
    { press: "d", command: "demo", label: "try six tasks" },
    ...EVERYWHERE,
  ],
  task: TASK,
  "task-log": [...LOG, ...TASK],
  "task-timeline": [...TIMELINE, ...TASK],
  thread: [
    ...MOVES.map((key) => (key.label === "move" ? { ...key, label: "notice" } : key)),
    { press: "d", command: "deliver", label: "deliver again" },
    { press: "b", command: "notify", label: "notify me" },
    { press: "y", command: "copy", label: "copy id" },
    { press: "Escape", command: "escape", label: "back" },
    ...EVERYWHERE,
  ],
  workers: [{ press: "Escape", command: "escape", label: "back" }, ...EVERYWHERE],
  answer: [
    { press: "j", command: "next", label: "question" },
    { press: "k", command: "previous", label: "question" },
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ press: String(n), command: `choose${n}`, ...(n < 4 && { label: "choose" }) })),
    { press: "i", command: "write", label: "write" },
    { press: "Ctrl+Enter", command: "confirm", label: "confirm" },
    { press: "o", command: "open", label: "open task" },
    { press: "Escape", command: "escape", label: "later" },
    ...EVERYWHERE,
  ],
};

/** What needs the daemon; not possible while it is away. */
export const NEEDS_DAEMON = new Set(["cancel", "answer", "resume", "fork", "send", "confirm", "deliver", "demo"]);

const KEY_NAMES = /** @type {Record<string, string>} */ ({
  Enter: "↵",
  Escape: "esc",
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  "Ctrl+Enter": "Ctrl ↵",
});

/** @param {string} press */
export const keyName = (press) => KEY_NAMES[press] ?? press;

/**
 * The keys of a view by label, for its footer.
 * @param {string} view
 * @returns {{label: string, keys: string[], commands: string[]}[]}
 */
export function footer(view) {
  /** @type {Map<string, {label: string, keys: string[], commands: string[]}>} */
  const found = new Map();
  const taken = new Set();
  for (const { label, press, command } of MAPS[view] ?? EVERYWHERE) {
    if (taken.has(press) || !label) continue;
    taken.add(press);
    const entry = found.get(label) ?? { label, keys: [], commands: [] };
    entry.keys.push(keyName(press));
    entry.commands.push(command);
    found.set(label, entry);
  }
  return [...found.values()].map((entry) => ({ ...entry, keys: folded(entry.keys) }));
}

/** 1 – 6 instead of each digit. @param {string[]} keys */
const folded = (keys) => (keys.length > 3 ? [keys[0], "–", keys[keys.length - 1]] : keys);

/**
 * @param {KeyboardEvent} event
 * @param {string} view
 * @returns {string} the command, or ""
 */
export function commandOf(event, view) {
  if (event.altKey || event.metaKey || event.isComposing) return "";
  const press = event.ctrlKey ? `Ctrl+${event.key}` : event.key;
  const writes =
    event.target instanceof Element && event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
  if (writes && press !== "Ctrl+Enter") return "";
  // A link or a button that has the focus is pressed by Enter itself.
  if (press === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return "";
  return (MAPS[view] ?? EVERYWHERE).find((key) => key.press === press)?.command ?? "";
}
