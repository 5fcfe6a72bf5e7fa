// @ts-check
/** The base of all elements, and one directive. */
import { Directive, LitElement, directive, noChange } from "../vendor/lit.js";

/**
 * An element without a shadow root: one style sheet styles the page, and ids reach across elements, as
 * aria-activedescendant needs. Reactive properties are set in constructors; class fields would hide them.
 */
export class PageElement extends LitElement {
  /** @type {(() => void)[]} */
  #endings = [];

  createRenderRoot() {
    return this;
  }

  /** What the element listens to while it is on the page. @returns {(() => void)[]} what ends each */
  listen() {
    return [];
  }

  connectedCallback() {
    super.connectedCallback();
    this.#endings = this.listen();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    for (const end of this.#endings) end();
    this.#endings = [];
  }
}

/** Sets properties by the CSSOM: the page's policy forbids style attributes. */
class Styles extends Directive {
  /** @param {Record<string, string>} values */
  render(values) {
    return noChange;
  }

  /** @param {any} part @param {[Record<string, string>]} values */
  update(part, [values]) {
    const { style } = part.element;
    for (const [name, value] of Object.entries(values)) {
      if (style.getPropertyValue(name) !== value) style.setProperty(name, value);
    }
    return noChange;
  }
}

/** html`<i ${styles({ width: "40%" })}></i>` */
export const styles = directive(Styles);

/** The same for custom properties. All elements inside inherit one, and are styled anew when it changes. */
export const vars = styles;
