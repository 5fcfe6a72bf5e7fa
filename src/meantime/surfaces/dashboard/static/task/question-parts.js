// @ts-check
/** Parts of a question: what it asks for, whole; what each answer means; its deadline; the answer as it is sent. */
import { isStopped, now } from "../core/clock.js";
import { countdown, cut, duration, ms, time } from "../core/format.js";
import { bar, button } from "../core/parts.js";
import { html, nothing } from "../vendor/lit.js";
import { inputWord } from "./task-overview.js";

/** @typedef {import("../core/types.js").Question} Question */
/** @typedef {import("../core/types.js").Choice} Choice */
/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {import("../core/types.js").Task} Task */

const PROMPT = 2_000; // characters that are shown beside a question; the task has all
const COMMANDS = ["command", "cmd", "script"]; // arguments that hold what will run

/** @param {Choice} choice */
export function choiceNote({ allows, scope }) {
  if (allows === false) return "the agent is told, and goes on without it";
  if (allows === null) return "";
  return scope === "task" ? "the same request, until this task ends" : "this one, now";
}

/**
 * @param {Question} question
 * @param {(text: string) => void} onCopy
 */
export function subjectView({ subject, arguments: given }, onCopy) {
  const fields = given && typeof given === "object" && !Array.isArray(given) ? given : {};
  const name = COMMANDS.find((each) => typeof fields[each] === "string" || Array.isArray(fields[each]));
  const main = name
    ? Array.isArray(fields[name])
      ? fields[name].join(" ")
      : fields[name]
    : given === null || given === undefined
      ? subject
      : typeof given === "string"
        ? given
        : JSON.stringify(given, null, 2);
  const rest = name ? Object.entries(fields).filter(([each]) => each !== name) : [];
  return html`<h2>
      ${name ? "Command" : subject || "Request"} <span class="quiet">whole, as it will run</span
      ><span class="spring"></span>${button("Copy", { icon: "copy", press: () => onCopy(main) })}
    </h2>
    <pre class="text ask-text" data-command=${name ? "" : nothing} tabindex="0">${main}</pre>
    ${
      subject || rest.length
        ? html`<p class="ask-facts second">
            ${subject ? html`<span>tool <code>${subject}</code></span>` : nothing}
            ${rest.map(([field, value]) => html`<span>${field} <code>${typeof value === "string" ? value : JSON.stringify(value)}</code></span>`)}
          </p>`
        : nothing
    }`;
}

/**
 * As the daemon reads it: choices by id, with a comma between several, or one choice, a colon and words.
 * @param {Question} question @param {string[]} chosen @param {string} words
 */
export function answerText(question, chosen, words) {
  if (!chosen.length) return words;
  const names = chosen.map((id) => (/[:,]/.test(id) ? String(question.choices.findIndex((choice) => choice.id === id) + 1) : id));
  return words && names.length === 1 ? `${names[0]}: ${words}` : names.join(",");
}

/** A rule as it stands in config.toml. @param {string} name @param {string[]} patterns */
const ruleText = (name, patterns) => `${name} = [${patterns.map((pattern) => JSON.stringify(pattern)).join(", ")}]`;

/**
 * Why a person was asked, and the rule that would answer from now on. Rules name tools, not their arguments.
 * @param {Task} data @param {Question} question @param {(text: string) => void} onCopy
 */
export function rulesView(data, { subject }, onCopy) {
  const rules = data.rules;
  if (!rules || !subject) return nothing;
  const known = [
    rules.deny.length ? ruleText("deny", rules.deny) : "",
    rules.allow.length ? ruleText("allow", rules.allow) : "",
    `otherwise = ${JSON.stringify(rules.otherwise)}`,
  ].filter(Boolean);
  const wanted = ruleText("allow", [...rules.allow, subject]);
  const agent = /^[\w-]+$/.test(data.row.agent) ? data.row.agent : JSON.stringify(data.row.agent);
  return html`<section>
      <h2>Rules that asked</h2>
      <pre class="rule" tabindex="0">[agents.${agent}]\n${known.join("\n")}</pre>
      <p class="second">No rule names <code>${subject}</code>, so ${rules.otherwise === "ask" ? "a person is asked" : "its host asks"}.</p>
    </section>
    <section>
      <h2>Rule that would answer it</h2>
      <pre class="rule" tabindex="0">${wanted}</pre>
      ${button("Copy", { icon: "copy", press: () => onCopy(wanted) })}
      <p class="second">In the configuration, and for every use of that tool. It holds after <code>meantime down</code> and <code>up</code>.</p>
    </section>`;
}

/** What the task was asked to do. @param {Task} data */
export function promptView({ kind, prompt }) {
  if (!prompt) return nothing;
  return html`<section>
    <h2>${inputWord(kind)} of the task</h2>
    <pre class="text" dir="auto" tabindex="0">${cut(prompt, PROMPT)}</pre>
  </section>`;
}

/** How long there is left to answer; without a deadline, how long the question has waited. @param {Row} row */
export function deadlineView(row) {
  const deadline = ms(row.question?.deadlineAt);
  if (!deadline) return html`<span class="ask-time second">waits for ${duration(now() - ms(row.lastEventAt))}, no deadline</span>`;
  if (isStopped()) return html`<span class="ask-time warn">until ${time(deadline)}</span>`;
  const part = (deadline - now()) / Math.max(1, deadline - ms(row.lastEventAt));
  return html`<span class="ask-time"
    >${bar(part, "deadline")}<b class="warn">${countdown(deadline - now())}</b><span class="second">${row.question?.kind === "permission" ? "then rejected" : "then unanswered"}</span></span
  >`;
}

/** @param {Record<string, any>} body */
export function answeredBefore(body) {
  const by = body.by ? ` by ${body.by}` : "";
  return `Somebody else was first: it was answered${by}${body.at ? ` at ${time(body.at)}` : ""}${body.answer ? ` with “${body.answer}”` : ""}. Your answer was not used.`;
}
