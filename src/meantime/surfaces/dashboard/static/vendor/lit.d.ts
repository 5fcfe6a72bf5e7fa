// Types for `tsc --checkJs` alone; no browser loads this file. tests/surfaces/dashboard/tsconfig.json finds `lit`.
export { LitElement, html, svg, render, nothing, noChange } from "lit";
export { AsyncDirective } from "lit/async-directive.js";
export { Directive, directive, PartType } from "lit/directive.js";
export { guard } from "lit/directives/guard.js";
export { live } from "lit/directives/live.js";
export { createRef, ref } from "lit/directives/ref.js";
export { repeat } from "lit/directives/repeat.js";
