// @ts-check
/** What needs you: open questions by deadline, and the whole of one. Nothing is chosen beforehand, nothing is sent unasked. */
import { access } from "../core/access.js";
import { copy, say, sayError } from "../core/announce.js";
import { ApiError, get, path, post } from "../core/api.js";
import { now, onTick } from "../core/clock.js";
import { PageElement } from "../core/element.js";
import { duration, ms, time } from "../core/format.js";
import { icon } from "../core/icons.js";
import { button, commandLine } from "../core/parts.js";
import { address, go } from "../core/router.js";
import { store } from "../core/store.js";
import { rankOf } from "../list/row-groups.js";
import { kindOf } from "../list/row-texts.js";
import { html, nothing } from "../vendor/lit.js";
import { obstacle } from "./actions.js";
import { answerText, answeredBefore, choiceNote, deadlineView, promptView, rulesView, subjectView } from "./question-parts.js";

/** @typedef {import("../core/types.js").Task} Task */
/** @typedef {import("../core/types.js").Row} Row */
/** @typedef {import("../core/types.js").Question} Question */

class AnswerPage extends PageElement {
  static properties = { task: {}, data: { state: true }, chosen: { state: true }, note: { state: true } };

  constructor() {
    super();
    this.task = "";
    /** @type {Task|null} */
    this.data = null;
    /** @type {string[]} ids of choices */
    this.chosen = [];
    this.note = "";
    this.sending = false;
    this.view = "answer";
  }

  listen() {
    return [store.subscribe((changed) => this.onRows(changed)), onTick(() => this.requestUpdate())];
  }

  /** @returns {Row[]} */
  get waiting() {
    return [...store.rows.values()].filter((row) => row.state === "waiting").sort((a, b) => rankOf(a) - rankOf(b));
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("task")) {
      this.data = null;
      this.chosen = [];
      this.note = "";
    }
    const id = this.task === "next" ? (this.waiting[0]?.id ?? "") : this.task;
    if (this.task === "next" && id) queueMicrotask(() => go({ answer: id }, true));
    else if (changed.has("task") && id && id !== "next") this.look();
  }

  /** @param {Set<string>} changed */
  onRows(changed) {
    if (this.data && changed.has(this.data.id)) this.look();
    this.requestUpdate();
  }

  async look() {
    const asked = this.task;
    try {
      const data = await get(path`/v1/tasks/${asked}`);
      if (asked !== this.task) return;
      if (this.data?.question && data.question?.id !== this.data.question.id && !this.sending)
        this.note = "It was answered elsewhere, or its time is over.";
      this.data = data;
    } catch (error) {
      sayError(error);
    }
  }

  /** @returns {Question|null} */
  get question() {
    return this.data?.question ?? null;
  }

  get words() {
    return this.querySelector("textarea")?.value.trim() ?? "";
  }

  /** @param {string} id */
  choose(id) {
    const several = this.question?.several;
    const others = this.chosen.filter((each) => each !== id);
    this.chosen = several ? (others.length < this.chosen.length ? others : [...others, id]) : [id];
  }

  /** @param {string} name one of keys.js @returns {boolean} whether it is known here */
  command(name) {
    const choice = this.question?.choices[Number(/^choose(\d)$/.exec(name)?.[1]) - 1];
    if (choice) this.choose(choice.id);
    else if (name.startsWith("choose")) return true;
    else if (name === "next" || name === "previous") this.step(name === "next" ? 1 : -1);
    else if (name === "write") this.querySelector("textarea")?.focus();
    else if (name === "confirm") this.confirm();
    else if (name === "open") this.data && go({ task: this.data.id });
    else if (name === "escape") access.question || go({});
    else return false;
    return true;
  }

  /** @param {number} by */
  step(by) {
    const all = this.waiting;
    const to = all[all.findIndex((row) => row.id === this.data?.id) + by];
    if (to) go({ answer: to.id }, true);
  }

  async confirm() {
    const [question, words] = [this.question, this.words];
    if (!this.data || !question || this.sending) return;
    const why = access.question ? "" : obstacle();
    if (why) return sayError(why);
    if (question.choices.length && !this.chosen.length) return sayError("Choose an answer first.");
    if (!question.choices.length && !words) return sayError("Write an answer first.");
    const answer = answerText(question, this.chosen, words);
    this.sending = true;
    try {
      await post(path`/v1/tasks/${this.data.id}/answer`, { answer, question: question.id });
      say(`Answered: ${this.label}.`);
      this.leave();
    } catch (error) {
      if (error instanceof ApiError && error.code === "already_answered") this.note = answeredBefore(error.body);
      else sayError(error);
      this.look();
    } finally {
      this.sending = false;
    }
  }

  /** To the next question, or back to the list. */
  leave() {
    const rest = this.waiting.filter((row) => row.id !== this.data?.id);
    if (access.question) this.look();
    else go(rest.length ? { answer: rest[0].id } : {}, true);
  }

  get label() {
    const labels = this.question?.choices.filter((choice) => this.chosen.includes(choice.id)).map((choice) => choice.label) ?? [];
    return labels.join(", ") || "your words";
  }

  /** @param {Row} row */
  itemView(row) {
    const open = row.id === this.data?.id;
    return html`<li>
      <a class="ask-item" href=${address({ answer: row.id })} aria-current=${open ? "page" : nothing}>
        <span class="state" data-state="waiting">${icon("waiting")}</span>
        <span class="ask-title" dir="auto"
          >${row.question?.kind === "permission" ? `Allow: ${row.title}` : (row.question?.text ?? row.title)}</span
        >
        <span class="second">${kindOf(row)} · <span class="mono">${row.shortId}</span> · ${row.thread}</span>
        ${deadlineView(row)}
      </a>
    </li>`;
  }

  /** @param {Question} question */
  choicesView(question) {
    if (!question.choices.length) return nothing;
    return html`<fieldset class="choices">
      <legend>Answer ${question.several ? html`<span class="quiet">several are possible</span>` : nothing}</legend>
      ${question.choices.map(
        (choice, index) =>
          html`<label class="choice" data-chosen=${this.chosen.includes(choice.id) ? "" : nothing}>
            <input
              type=${question.several ? "checkbox" : "radio"}
              name="choice"
              .checked=${this.chosen.includes(choice.id)}
              @change=${() => this.choose(choice.id)}
            />
            <b dir="auto">${choice.label}</b
            ><span class="second">${choiceNote(choice)}</span>${index < 9 ? html`<kbd>${index + 1}</kbd>` : nothing}
          </label>`,
      )}
    </fieldset>`;
  }

  /** @param {Question} question */
  wordsView(question) {
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // out of the text first; the next one leaves the page
      /** @type {HTMLElement} */ (event.target).blur();
    };
    const optional = html`Say something to the agent <span class="quiet">optional, sent with the answer</span>`;
    return html`<label class="field"
      ><span>${question.choices.length ? optional : "Your answer"} <kbd>i</kbd></span
      ><textarea rows="3" maxlength="20000" @keydown=${onKey}></textarea>
    </label>`;
  }

  /** @param {Task} data @param {Question} question */
  questionView(data, question) {
    const row = store.rows.get(data.id) ?? data.row;
    const permission = question.kind === "permission";
    return html`<p class="ask-since">
        <span class="state" data-state="waiting">${icon("waiting")}Waiting for you</span
        ><span class="second">since ${time(question.askedAt)}, ${duration(now() - ms(question.askedAt))}</span
        ><span class="spring"></span>${deadlineView(row)}
      </p>
      <h1>${permission ? "Allow this?" : "It asks you"}</h1>
      <p class="second">
        <b class="strong">${kindOf(row)}</b> asks in task
        <a class="link" href=${address({ task: data.id })} dir="auto">${row.shortId} ${row.title}</a>, for ${row.thread}.
      </p>
      ${permission ? subjectView(question, (text) => copy(text, "it")) : nothing}
      ${
        question.text
          ? html`<h2>${permission ? "Why" : "Question"} <span class="tag">the agent’s words, not checked</span></h2>
              <blockquote dir="auto">${question.text}</blockquote>`
          : nothing
      }
      ${this.choicesView(question)} ${question.several ? nothing : this.wordsView(question)}
      <div class="dialog-buttons">
        ${button(this.chosen.length ? this.label : "Answer", { tone: "primary", key: "Ctrl ↵", reason: access.question ? "" : obstacle(), press: () => this.confirm() })}
        ${access.question ? nothing : button("Later", { key: "esc", press: () => go({}) })}
        <span class="spring"></span><span class="second">Nothing is sent before you confirm.</span>
      </div>`;
  }

  centre() {
    if (this.note) return html`<p class="ask-note" role="alert">${icon("warning")}${this.note}</p>`;
    if (this.data && this.question) return this.questionView(this.data, this.question);
    if (this.data)
      return html`<h1>It asks nothing any more</h1>
        <p class="second">
          It is ${this.data.state}. <a class="link" href=${address({ task: this.data.id })}>Open the task</a>
        </p>`;
    return html`<h1>Nothing needs you</h1>
      <p class="second">Questions of agents and permissions that they ask for appear here.</p>`;
  }

  asideView() {
    const [question, deadline] = [this.question, this.data?.row.question?.deadlineAt ?? this.question?.deadlineAt];
    if (!this.data || !question) return nothing;
    const cli = this.data.actions?.find((action) => action.name === "answer")?.cli;
    return html`<aside class="inspector" aria-label="About this question">
      ${question.kind === "permission" ? rulesView(this.data, question, (text) => copy(text, "the rule")) : nothing}
      <section>
        <h2>If nobody answers</h2>
        <p class="second">
          ${deadline ? `At ${time(deadline)} the question counts as ${question.kind === "permission" ? "rejected" : "not answered"}. The agent is told so; the task goes on.` : "It waits until somebody does, or until the task’s own time is over."}
        </p>
      </section>
      ${
        question.kind === "permission"
          ? html`<section>
              <h2>How far it reaches</h2>
              <p class="second">
                “Once” is this call alone. “For this task” is the same request until the task ends. No timer ever answers with “allow”.
              </p>
            </section>`
          : nothing
      }
      ${promptView(this.data)}
      ${
        cli
          ? html`<section>
              <h2>Command line</h2>
              ${commandLine(cli)}
            </section>`
          : nothing
      }
    </aside>`;
  }

  render() {
    const all = this.waiting;
    return html`<div class="answer">
      <nav class="asks-list" aria-label="Questions">
        <h2>
          Needs you <span class="quiet">${all.length}</span><span class="spring"></span><span class="quiet">by deadline</span>
        </h2>
        <ul>
          ${all.map((row) => this.itemView(row))}
        </ul>
      </nav>
      <main id="page" class="ask" tabindex="-1">${this.centre()}</main>
      ${this.asideView()}
    </div>`;
  }
}

customElements.define("mt-answer-page", AnswerPage);
