// @ts-check
/** The bar at the top: search, whether the page is live, pause, notifications, theme, help. */
import { PageElement } from "./element.js";
import { count, duration, time } from "./format.js";
import { icon } from "./icons.js";
import { store } from "./store.js";
import { theme } from "./theme.js";
import { mayWrite } from "./access.js";
import { html, nothing } from "../vendor/lit.js";
import "./search-box.js";

/** Event: `command` (detail: one of keys.js). */
class TopBar extends PageElement {
  listen() {
    const shown = () => [store.status, store.isPaused, store.missed, theme()];
    return [store.subscribeTo(shown, () => this.requestUpdate())];
  }

  /** @param {string} name */
  command(name) {
    this.dispatchEvent(new CustomEvent("command", { detail: name, bubbles: true }));
  }

  get live() {
    const { state } = store.status;
    if (state === "live" && store.isPaused) return html`<span class="live" data-state="paused">${icon("pause")}Paused</span>`;
    if (state === "live") return html`<span class="live" data-state="live"><i></i>Live</span>`;
    if (state === "connecting") return html`<span class="live" data-state="connecting"><i></i>Connecting</span>`;
    return html`<span class="live" data-state="lost">${icon("cut")}Disconnected</span>`;
  }

  render() {
    const paused = store.isPaused;
    return html`<header class="top-bar">
      <a class="brand" href="/">${icon("logo")}<b>Meantime</b></a>
      <mt-search></mt-search>
      <div class="top-tools">
        ${mayWrite() ? nothing : html`<span class="tag" title="This page was opened with a right to look only.">read only</span>`}
        <span role="status">${this.live}</span>
        <button class="button pause" aria-pressed=${paused} @click=${() => this.command("pause")}>
          ${icon(paused ? "play" : "pause")}${paused ? html`Go on${store.missed ? html` · ${count(store.missed)} changed` : nothing}` : "Pause"}<kbd
            >.</kbd
          >
        </button>
        <button class="icon-button narrow-only" aria-label="Search" @click=${() => this.command("search")}>
          ${icon("search")}
        </button>
        <button
          class="icon-button"
          aria-label="Notifications"
          title="Notifications"
          @click=${() => this.command("notifications")}
        >
          ${icon("bell")}
        </button>
        <button
          class="icon-button"
          aria-label="Theme: ${theme()}"
          title="Theme: ${theme()}"
          @click=${() => (this.command("theme"), this.requestUpdate())}
        >
          ${icon("theme")}
        </button>
        <button class="icon-button" aria-label="All keys" title="All keys" @click=${() => this.command("help")}>
          ${icon("help")}
        </button>
      </div>
    </header>`;
  }
}

/** Says since when the page is cut off. */
class ConnectionBanner extends PageElement {
  listen() {
    const timer = setInterval(() => store.status.state === "disconnected" && this.requestUpdate(), 1_000);
    return [store.subscribeTo(() => [store.status], () => this.requestUpdate()), () => clearInterval(timer)];
  }

  render() {
    const { state, since, retryAt, reason } = store.status;
    if (state === "refused")
      return html`<div class="banner" role="alert">
        ${icon("cut")}<b>This page may not look any more.</b><span>${reason}</span>
      </div>`;
    if (state !== "disconnected") return nothing;
    const wait = Math.max(0, retryAt - Date.now());
    return html`<div class="banner" role="alert">
      ${icon("cut")}<b>Disconnected since ${time(since)}</b><span class="dot">clocks stopped</span>
      <span class="dot" aria-live="off">${wait ? `retrying in ${duration(wait + 999)}` : "connecting"}</span>
      <span class="banner-note"
        >Everything below is as of ${time(since)}. Tasks go on running; actions wait for the connection.</span
      >
      <button class="button" @click=${() => this.dispatchEvent(new CustomEvent("command", { detail: "retry", bubbles: true }))}>
        ${icon("again")}Retry now<kbd>R</kbd>
      </button>
    </div>`;
  }
}

customElements.define("mt-top-bar", TopBar);
customElements.define("mt-banner", ConnectionBanner);
