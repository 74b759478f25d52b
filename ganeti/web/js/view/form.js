// The form of a request beside the page: fields, plan, the same as a command, and what it does.
import { ApiError, call, expired, resultOf, session } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { KINDS } from "../kinds.js";
import { commandLine, curl } from "../model/command.js";
import { arrange, missing, permits, request, scalar } from "../model/form.js";
import { movesOf, verdicts } from "../model/map.js";
import { api, commands } from "../store.js";
import { t } from "../text.js";
import { formOf, open } from "./actions.js";
import { watched } from "./dock.js";
import { FieldRow } from "./field.js";

/** @typedef {Record<string, any>} Row */

/** Values that follow from the object: its name for whatever stands in the path. @param {import("../model/form.js").Form} form @param {Row} row @param {string} key */
function ofPath(form, row, key) {
  const names = form.fields.filter((field) => field.place === "path").map((field) => field.name);
  return names.length && row[key] !== undefined ? { [names[0]]: row[key] } : {};
}

export function FormDrawer() {
  const given = open.value;
  if (!given || !api.value) return null;
  const form = formOf(given.action);
  return form && html`<${Drawer} key=${given.action.request + given.action.label} form=${form} given=${given} />`;
}

/** @param {{form: import("../model/form.js").Form, given: NonNullable<typeof open.value>}} props */
function Drawer({ form, given }) {
  const { action, kind, rows } = given;
  const key = KINDS[kind].subject ?? KINDS[kind].key;
  const names = given.subject ? [given.subject] : rows.map((row) => String(row[key]));
  const fixed = action.fixed ?? {};
  const [typed, setTyped] = useState(() => ({ ...action.typed?.(rows[0] ?? {}), ...given.typed }));
  const [state, setState] = useState({ busy: false, problem: "", note: "", plan: /** @type {any} */ (null) });
  const [sure, setSure] = useState("");
  const dialog = useRef(/** @type {HTMLElement | null} */ (null));
  // An effect would come too late: the page behind a form has no focus.
  const [opener] = useState(() => /** @type {HTMLElement | null} */ (document.activeElement));
  useEffect(() => {
    /** @type {HTMLElement | null | undefined} */ (dialog.current?.querySelector("input, select, button.primary"))?.focus();
    // Nothing there may be focused, as with a form whose only button waits for more: Escape is still heard.
    if (!dialog.current?.contains(document.activeElement)) dialog.current?.focus();
    // What opened it may be in a menu that is closed by now.
    return () => (opener?.closest("details.menu")?.querySelector("summary") ?? opener)?.focus();
  }, []);
  /** @type {ReturnType<typeof arrange>} */
  const parts = useMemo(() => arrange(form, action.first ?? []), [form]);
  const made = (rows.length ? rows : [{}]).map((row) => request(form, { ...typed, ...ofPath(form, row, key) }, { fixed }));
  const needed = missing(form, { ...typed, ...ofPath(form, rows[0] ?? {}, key) }, fixed);
  const extraPath = form.fields.filter((field) => field.place === "path" && !(field.name in (given.typed ?? {})) && (!rows.length || field.name in typed || !(field.name in ofPath(form, rows[0], key))));
  const danger = action.danger?.(names.length ? names : [String(typed.instance_name ?? "")]);
  const mustType = form.method === "DELETE" && rows.length === 1;
  const allowed = permits(session.value?.access, form);
  const close = () => (open.value = null);

  /** How many of several objects have their job already: one that failed does not repeat the others. */
  const submitted = useRef(0);
  const run = async (/** @type {boolean} */ dryRun) => {
    setState({ busy: true, problem: "", note: "", plan: null });
    const found = [];
    try {
      for (const [index, row] of (rows.length ? rows : [{}]).entries()) {
        if (index < submitted.current) continue;
        const asked = dryRun ? request(form, { ...typed, ...ofPath(form, row, key) }, { fixed, dryRun }) : made[index];
        found.push(await call(asked.method, asked.path, { query: asked.query, body: Object.keys(asked.body).length ? asked.body : undefined }));
      }
      const jobs = found.filter((id) => typeof id === "number");
      if (jobs.length) watched.value = jobs[0];
      if (!dryRun) return close();
      const result = await resultOf(found[0]);
      setState({ busy: false, problem: "", note: t.form.dryGood, plan: result && typeof result === "object" && !Array.isArray(result) ? result : null });
    } catch (error) {
      if (!dryRun) submitted.current += found.length;
      const problem = /** @type {ApiError} */ (error).message;
      setState({ busy: false, problem: submitted.current ? t.form.partly(submitted.current, rows.length, problem) : problem, note: "", plan: null });
    }
    return undefined;
  };
  const place = async () => {
    setState({ busy: true, problem: "", note: "", plan: null });
    try {
      const be = typed.beparams ?? {};
      const disk = typed.disks?.[0]?.size;
      const wish = { memory: scalar(be.maxmem ?? be.memory), vcpus: scalar(be.vcpus), disk: disk === undefined ? undefined : scalar(disk), disk_template: typed.disk_template, group_name: typed.group_name };
      const body = Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined && value !== ""));
      const id = await call("PUT", "/2/placement/place", { body });
      setState({ busy: false, problem: "", note: "", plan: await resultOf(id) });
    } catch (error) {
      setState({ busy: false, problem: /** @type {ApiError} */ (error).message, note: "", plan: null });
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!needed.length && (!mustType || sure === names[0]) && !state.busy) void run(false);
  };
  const fieldRow = (/** @type {import("../model/form.js").Field} */ field) => html`<${FieldRow} key=${field.name} id=${`f-${field.name}`} field=${field} value=${typed[field.name]}
    all=${{ ...typed, "=hypervisor": rows[0]?.hypervisor }} onChange=${(/** @type {any} */ value) => setTyped((/** @type {Row} */ old) => ({ ...old, [field.name]: value }))} />`;

  return html`<div class="veil" onClick=${close}></div>
  <aside class="drawer" role="dialog" aria-modal="true" aria-labelledby="form-title" tabindex="-1" inert=${expired.value} ref=${dialog} onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Escape" && close()}>
    <form onSubmit=${submit} autocomplete="off">
    <header><h2 id="form-title">${action.label} <span class="of">${names.length > 1 ? t.form.bulk(names.length) : names[0] ?? ""}</span></h2>
      <button type="button" class="quiet" aria-label=${t.form.close} onClick=${close}>×</button></header>
    <div class="drawer-body">
      <p class="lead">${form.summary}.</p>
      ${danger && html`<div class="consequence"><b>${t.form.consequence}</b> ${danger}</div>`}
      ${[...extraPath, ...parts.main.filter((field) => !(field.name in fixed) && !extraPath.some((other) => other.name === field.name))].map(fieldRow)}
      ${parts.more.filter((field) => !(field.name in fixed)).length > 0 && html`<details class="more"><summary>${t.form.more(parts.more.length)}</summary>${parts.more.filter((field) => !(field.name in fixed)).map(fieldRow)}</details>`}
      ${parts.general.length > 0 && html`<details class="more"><summary>${t.form.general}</summary>${parts.general.map(fieldRow)}</details>`}
      <${Same} form=${form} made=${made} />
      ${state.plan && html`<${Plan} plan=${state.plan} />`}
    </div>
    <footer>
      ${mustType && html`<label class="sure">${t.form.confirm(names[0])} <input id="sure" type="text" value=${sure} autocomplete="off" onInput=${(/** @type {any} */ e) => setSure(e.target.value)} /></label>`}
      <p class=${state.problem ? "problem" : "note"} role="status">${state.problem || state.note || (!allowed ? t.form.rights : needed.length ? t.form.needed(needed.join(", ")) : "")}</p>
      <div class="buttons">
        ${action.plan === "place" && html`<button type="button" disabled=${state.busy} onClick=${place}>${t.form.plan}</button>`}
        ${form.dryRun && html`<button type="button" disabled=${state.busy || needed.length > 0} onClick=${() => run(true)}>${t.form.dryRun}</button>`}
        <button type="submit" class=${form.method === "DELETE" ? "danger primary" : "primary"} disabled=${state.busy || needed.length > 0 || !allowed || (mustType && sure !== names[0])}>${state.busy ? t.form.working : form.method === "DELETE" ? action.label : t.form.submit}</button>
      </div></footer></form></aside>`;
}

/** The same as a command and as a call. @param {any} props */
function Same({ form, made }) {
  const command = commandLine(commands.value, form, made[0]);
  return html`<div class="same">
    ${command && html`<div><b>${t.form.command}</b><pre><code>${command}</code></pre></div>`}
    <div><b>${t.form.call}</b><pre><code>${curl(made[0], location.origin)}</code></pre></div></div>`;
}

/** What the allocator or a dry run says. @param {{plan: any}} props */
function Plan({ plan }) {
  const isPlace = plan.score !== undefined;
  const found = isPlace ? [...verdicts(plan)] : [];
  const { moves, stay, groups } = movesOf(plan);
  const known = isPlace || plan.moves !== undefined || groups.length > 0;
  const reasons = (plan.groups ?? []).map((/** @type {any} */ group) => group.reason).filter(Boolean);
  const item = (/** @type {boolean} */ fits, /** @type {string} */ name, /** @type {string} */ text) => html`<li key=${name} class=${fits ? "fits" : "refused"}><span>${name}</span> <small>${text}</small></li>`;
  return html`<section class="plan" aria-live="polite"><h3>${t.form.planTitle}</h3>
    ${isPlace && html`<p>${plan.nodes.length ? t.form.planNode(plan.nodes.join(", ")) : t.form.noPlace}</p>`}
    ${[...reasons, ...groups].map((text) => html`<p key=${text}>${text}</p>`)}
    <ul>${found.map(([name, verdict]) => item(verdict.fits, name, verdict.text))}
      ${moves.map((move) => item(true, move.instance, move.text))}${stay.map((one) => item(false, one.instance, one.text))}</ul>
    ${known && !isPlace && !moves.length && html`<p>${t.form.noMoves}</p>`}
    ${(plan.hints ?? []).map((/** @type {{text: string}} */ hint) => html`<p key=${hint.text}>${t.form.hint} ${hint.text}</p>`)}
    ${!known && html`<pre tabindex="0">${JSON.stringify(plan, null, 1)}</pre>`}</section>`;
}
