// @ts-check
/** What a ledger without tasks shows: three commands to try, and a button that hands off six small ones (decision 53). */
import { copy, say, sayError } from "../core/announce.js";
import { get, post } from "../core/api.js";
import { time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { button, commandLine } from "../core/parts.js";
import { store } from "../core/store.js";
import { obstacle } from "../task/actions.js";
import { html, nothing } from "../vendor/lit.js";

const STEPS = [
  {
    title: "Hand off a command",
    text: "Runs in the background; the id comes back at once.",
    command: "meantime run -- make test",
  },
  {
    title: "Connect your coding agent",
    text: "The agent hands off work and is told once, in order.",
    command: "meantime install claude-code",
  },
  {
    title: "See it work, without a key",
    text: "Six real pieces of work by a scripted agent. No model, no network.",
    command: "meantime demo",
  },
];

/** Small and real: each reads or counts something of this machine. One is slow, one fails, two wait in line. */
const PIECES = [
  {
    description: "hash the system's headers",
    command: "find /usr -name '*.h' -type f 2>/dev/null | head -400 | xargs -r cksum | cksum",
  },
  {
    description: "count the lines of /etc",
    command: "find /etc -type f -readable 2>/dev/null | head -300 | xargs -r cat 2>/dev/null | wc -l",
  },
  { description: "count to ten, slowly", command: 'for i in 1 2 3 4 5 6 7 8 9 10; do echo "step $i of 10"; sleep 1.4; done' },
  { description: "run a small check that fails", command: "sleep 3; echo 'checked 12 files, 1 is wrong'; exit 1" },
  { description: "list what this machine runs", command: "sleep 2; ps -e 2>/dev/null | wc -l" },
  { description: "wait for you to cancel it", command: "sleep 600" },
];

/** @type {{startedAt: string, ledger: string}|null} */
let info = null;
let asked = false;

async function learn() {
  asked = true;
  info = await get("/v1/info").catch(() => null);
  store.changed();
}

async function runDemo() {
  const why = obstacle();
  if (why) return sayError(why);
  try {
    for (const piece of PIECES) await post("/v1/tasks", { ...piece, thread: "demo", batch: "demo" });
    say(`${PIECES.length} pieces of work were handed off.`);
  } catch (error) {
    sayError(error);
  }
}

/** @param {string} name @returns {boolean} whether the command is known here */
export function emptyCommand(name) {
  const step = STEPS[Number(/^copy(\d)$/.exec(name)?.[1]) - 1];
  if (step) copy(step.command, "the command");
  else if (name === "demo") runDemo();
  else return false;
  return true;
}

export function emptyView() {
  if (!asked) learn();
  return html`<section class="empty">
    <h2>No tasks yet</h2>
    <p class="second">
      Work that an agent or you hand off appears here while it runs. The conversation that asked is told once, when it ends.
    </p>
    <ol class="steps">
      ${STEPS.map(
        (step, index) =>
          html`<li>
            <kbd>${index + 1}</kbd>
            <div>
              <b>${step.title}</b>
              <p class="second">${step.text}</p>
            </div>
            ${commandLine(step.command)}
          </li>`,
      )}
    </ol>
    <p class="empty-run">
      ${button("Try six tasks", { icon: "play", key: "d", tone: "primary", reason: obstacle(), press: runDemo })}
      <span class="second">about 15 seconds, then it is yours to cancel and to look into</span>
    </p>
    <p class="empty-foot second">
      ${icon("check")}Connected to the
      daemon${info ? html`, which runs since ${time(info.startedAt)} · ledger <code>${info.ledger}</code>` : nothing} · 0 tasks
    </p>
  </section>`;
}
