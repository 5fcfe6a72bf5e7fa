// @ts-check
/** The keys of the view, printed from keys.js, and which daemon this is. */
import { get } from "./api.js";
import { whenIdle } from "./clock.js";
import { PageElement } from "./element.js";
import { icon } from "./icons.js";
import { footer, NEEDS_DAEMON } from "./keys.js";
import { address } from "./router.js";
import { store } from "./store.js";
import { html, nothing } from "../vendor/lit.js";

/** @typedef {{label: string, keys: string[], commands: string[]}} FooterKey */

/** It names all keys, so it is seen even where the others do not fit. @param {FooterKey} key */
const isHelp = (key) => key.commands.includes("help");

/** @param {FooterKey} key */
const keyView = (key) =>
  html`<span>${key.keys.map((name) => (name === "–" ? name : html`<kbd>${name}</kbd>`))}${key.label}</span>`;

class Footer extends PageElement {
  static properties = { view: {}, version: { state: true } };

  constructor() {
    super();
    this.view = "list";
    this.version = "";
  }

  listen() {
    whenIdle(() =>
      get("/v1/health").then(
        (health) => (this.version = health.version),
        () => {},
      ),
    );
    return [store.subscribe(() => this.requestUpdate())];
  }

  /** Rendered anew only when the view or the connection changed. */
  shouldUpdate() {
    const shows = `${this.view} ${this.version} ${store.status.state} ${store.overview?.counts.waiting} ${store.overview?.threads[0]?.id}`;
    const changed = shows !== this.shown;
    this.shown = shows;
    return changed;
  }

  /** @type {string|undefined} */
  shown;

  /** On narrow screens, which have no keys. */
  narrowView() {
    const needs = store.overview?.counts.waiting ?? 0;
    const thread = store.overview?.threads[0]?.id ?? "";
    const items = [
      { name: "Tasks", icon: "all", href: "/", open: this.view === "list" || this.view === "empty" },
      { name: "Needs you", icon: "shield", href: address({ answer: "next" }), open: this.view === "answer", badge: needs },
      { name: "Conversation", icon: "conversation", href: thread ? address({ thread }) : "/", open: this.view === "thread" },
    ];
    return html`<nav class="bottom-nav" aria-label="Views">
      ${items.map((item) => html`<a href=${item.href} aria-current=${item.open ? "page" : nothing}>${icon(item.icon)}${item.name}${item.badge ? html`<b>${item.badge}</b>` : nothing}</a>`)}
    </nav>`;
  }

  render() {
    const cut = store.status.state === "disconnected";
    const keys = footer(this.view);
    const away = keys.filter((key) => cut && NEEDS_DAEMON.has(key.commands[0]));
    return html`<footer class="footer">
      ${this.narrowView()}
      <div class="footer-keys">
        ${cut ? html`<span><kbd>R</kbd>retry now</span>` : nothing}
        ${keys.filter((key) => !away.includes(key) && !isHelp(key)).map(keyView)}
      </div>
      <div class="footer-help">${keys.filter(isHelp).map(keyView)}</div>
      <span class="second" data-away=${away.length ? "" : nothing}>
        ${away.length ? html`${away.map((key) => `${key.keys.join(" ")} ${key.label}`).join(", ")}: not while disconnected` : html`${location.host} · meantime ${this.version}`}
      </span>
    </footer>`;
  }
}

customElements.define("mt-footer", Footer);
