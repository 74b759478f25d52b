// Buttons for what can be done with objects; each opens the form of its request.
import { session } from "../api.js";
import { html, signal } from "../html.js";
import { CLUSTER_ACTIONS, KINDS } from "../kinds.js";
import { describe, permits } from "../model/form.js";
import { api } from "../store.js";
import { t } from "../text.js";

/** The form that is open; `subject` is a part of the object that it is about. @type {{value: null | {action: import("../kinds.js").Action, kind: string, rows: Record<string, any>[], typed?: Record<string, any>, subject?: string}}} */
export const open = signal(/** @type {any} */ (null));

/** @param {import("../kinds.js").Action} action */
export function formOf(action) {
  const [method, path] = action.request.split(" ");
  return api.value && describe(api.value, /** @type {Api.Method} */ (method), path);
}

/** Whether the API has the request and this user may make it. @param {import("../kinds.js").Action} action */
export function isOffered(action) {
  const form = formOf(action);
  return Boolean(form && permits(session.value?.access, form));
}

/** Whether this user may see a list that is no resource of queries; of the others everybody sees something. @param {string} kind */
export function isListed(kind) {
  const path = KINDS[kind].list;
  const form = path && api.value && describe(api.value, "GET", path);
  return !path || Boolean(form && permits(session.value?.access, form));
}

/** @param {{kind: string}} props */
export function CreateButtons({ kind }) {
  const found = (KINDS[kind].create ?? []).filter(isOffered);
  return html`<span class="creates">${found.map((action) => html`<button class="primary" key=${action.label}
    onClick=${() => (open.value = { action, kind, rows: [] })}>${action.label}</button>`)}</span>`;
}

/** Buttons; the last ones are in a menu. @param {any[]} buttons @param {number} most */
function arrange(buttons, most) {
  const rest = buttons.slice(most);
  return html`<span class="actions">${buttons.slice(0, most)}
    ${rest.length > 0 && html`<details class="menu"><summary>${t.actions.more}</summary><div class="pop">${rest}</div></details>`}</span>`;
}

/** Actions for the cluster. @param {{name: string, actions?: import("../kinds.js").Action[]}} props */
export function ClusterActions({ name, actions = CLUSTER_ACTIONS }) {
  return arrange(actions.filter(isOffered).map((action) => html`<button key=${action.label}
    onClick=${() => (open.value = { action, kind: "node", rows: [], subject: name })}>${action.label}</button>`), 2);
}

/** Actions for one object, or for several. @param {{kind: string, rows: Record<string, any>[], most?: number}} props */
export function Actions({ kind, rows, most = 6 }) {
  const fitting = KINDS[kind].actions
    .filter((action) => rows.length === 1 || action.bulk)
    .filter((action) => rows.every((row) => !action.when || action.when(row)))
    .filter(isOffered);
  const button = (/** @type {import("../kinds.js").Action} */ action) => html`<button key=${action.label} class=${/Remove$|Release/.test(action.label) ? "danger" : ""}
    onClick=${() => (open.value = { action, kind, rows })}>${action.label}</button>`;
  return arrange(fitting.map(button), most);
}

/** An action on a part of an instance. @param {{action: import("../kinds.js").Action, row: Record<string, any>, typed?: Record<string, any>, subject?: string}} props */
export function PartButton({ action, row, typed, subject }) {
  if (!isOffered(action)) return null;
  const isRemoval = action.request.startsWith("DELETE");
  const fits = !action.when || action.when(row);
  return html`<button class=${isRemoval ? "danger" : ""} disabled=${!fits} title=${fits ? "" : t.detail.stopFirst} onClick=${() => (open.value = { action, kind: "instance", rows: [row], typed, subject })}>${action.label}</button>`;
}
