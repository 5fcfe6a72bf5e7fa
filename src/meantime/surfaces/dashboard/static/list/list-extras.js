// @ts-check
/** The parts of the list view that its first rows do not need. They are loaded together, after them. */
export { actOn } from "../task/actions.js";
export { bulk, bulkBar } from "./bulk-bar.js";
export { emptyCommand, emptyView } from "./empty-view.js";
