// One field of a form, whatever its kind.
import { html, useEffect } from "../html.js";
import { cluster, lists, need } from "../store.js";
import { t } from "../text.js";

/** @typedef {import("../model/form.js").Field} Field */

const NAMED = ["node", "group", "instance", "network", "os", "image"];

/** Names that may be meant. @param {string} kind @returns {string[]} */
function namesOf(kind) {
  const rows = lists[kind]?.value ?? [];
  if (kind === "os") return rows.flatMap((row) => (row.variants?.length ? row.variants.map((/** @type {string} */ v) => `${row.name}+${v}`) : [row.name]));
  return rows.map((row) => row.name).sort();
}

/** Known parameters with their values of the cluster. @param {string} kind @param {Record<string, any>} all what is typed */
function parametersOf(kind, all) {
  const info = cluster.value ?? {};
  const hypervisor = all.hypervisor || all["=hypervisor"] || info.default_hypervisor;
  return { hvparams: info.hvparams?.[hypervisor], beparams: info.beparams?.default, ndparams: info.ndparams, nicparams: info.nicparams?.default }[kind] ?? {};
}

/** @param {{field: Field, value: any, onChange: (value: any) => void, all: Record<string, any>, id: string}} props */
export function FieldRow({ field, value, onChange, all, id }) {
  const wide = ["pairs", "rows", "changes", "json", "row"].includes(field.kind);
  return html`<div class=${wide ? "field wide" : "field"}>
    <label for=${id}>${label(field.name)}${field.required ? html`<b class="must" title="required"> *</b>` : ""}</label>
    <div class="control"><${Input} field=${field} value=${value} onChange=${onChange} all=${all} id=${id} />
    ${field.doc && html`<small id=${`${id}-doc`}>${field.doc}</small>`}</div></div>`;
}

/** @param {string} name */
function label(name) {
  const words = name.replace(/^custom_/, "").replaceAll(/[_-]/g, " ");
  const known = /** @type {Record<string, string>} */ ({ os: "OS", nics: "NICs", beparams: "Back-end parameters", hvparams: "Hypervisor parameters", pnode: "Primary node", snode: "Secondary node" });
  return known[words] ?? words[0].toUpperCase() + words.slice(1);
}

/** @param {{field: Field, value: any, onChange: (value: any) => void, all: Record<string, any>, id: string}} props */
function Input({ field, value, onChange, all, id }) {
  const typed = (/** @type {any} */ event) => onChange(event.target.value);
  const named = NAMED.includes(field.suggest);
  useEffect(() => void (named && need(field.suggest)), [field.suggest]);
  switch (field.kind) {
    case "flag": {
      const on = value ?? field.default ?? false;
      if (field.default === null) return html`<${Choice} id=${id} choices=${["true", "false"]} value=${value === undefined ? "" : String(value)} standard="" onChange=${(/** @type {string} */ v) => onChange(v === "" ? undefined : v === "true")} />`;
      return html`<input id=${id} type="checkbox" checked=${on} onChange=${(/** @type {any} */ e) => onChange(e.target.checked)} />`;
    }
    case "choice":
      return html`<${Choice} id=${id} choices=${field.choices} value=${value ?? ""} standard=${field.default} onChange=${onChange} />`;
    case "secret":
      return html`<input id=${id} type="password" autocomplete="new-password" value=${value ?? ""} onInput=${typed} />`;
    case "number":
      return html`<input id=${id} type="number" value=${value ?? ""} placeholder=${field.default ?? ""} onInput=${typed} />`;
    case "pairs":
      return html`<${Pairs} id=${id} value=${value ?? {}} known=${parametersOf(field.suggest, all)} onChange=${onChange} />`;
    case "rows":
    case "changes":
      return html`<${Rows} field=${field} id=${id} value=${value ?? []} onChange=${onChange} all=${all} />`;
    case "row":
      return html`<div class="sub"><${RowFields} of=${field.of} id=${id} value=${value ?? {}} onChange=${onChange} all=${all} /></div>`;
    case "json":
      return html`<textarea id=${id} rows="3" spellcheck=${false} value=${typeof value === "string" || value === undefined ? value ?? "" : JSON.stringify(value)} onInput=${typed}></textarea>`;
    default:
      return html`<${Text} field=${field} id=${id} value=${value} onInput=${typed} />`;
  }
}

/** @param {any} props */
function Text({ field, id, value, onInput }) {
  const names = NAMED.includes(field.suggest) ? namesOf(field.suggest) : [];
  const shown = Array.isArray(value) ? value.join(", ") : value ?? "";
  return html`<input id=${id} type="text" value=${shown} placeholder=${field.default ?? ""} autocomplete="off" spellcheck=${false}
      list=${names.length ? `${id}-names` : undefined} onInput=${onInput} />
    ${names.length > 0 && html`<datalist id=${`${id}-names`}>${names.slice(0, 300).map((name) => html`<option key=${name} value=${name} />`)}</datalist>`}`;
}

/** @param {any} props */
function Choice({ id, choices, value, standard, onChange }) {
  return html`<select id=${id} value=${value} onChange=${(/** @type {any} */ e) => onChange(e.target.value)}>
    <option value="">${t.form.standard}${standard === null || standard === "" ? "" : ` (${standard})`}</option>
    ${choices.map((/** @type {any} */ choice) => html`<option key=${choice} value=${choice} selected=${String(choice) === String(value)}>${choice}</option>`)}
  </select>`;
}

/** Parameters by name. @param {any} props */
function Pairs({ id, value, known, onChange }) {
  const entries = Object.entries(value);
  const rename = (/** @type {string} */ old, /** @type {string} */ name) => onChange(Object.fromEntries(entries.map(([key, item]) => [key === old ? name : key, item])));
  return html`<div class="pairs" id=${id} role="group">
    ${entries.map(([key, item], index) => html`<div class="pair" key=${index}>
      <input type="text" aria-label=${t.form.key} list=${`${id}-keys`} value=${key} onChange=${(/** @type {any} */ e) => rename(key, e.target.value)} />
      <span aria-hidden="true">=</span>
      <input type="text" aria-label=${`${t.form.value} ${key}`} value=${item} placeholder=${String(known[key] ?? "")} onInput=${(/** @type {any} */ e) => onChange({ ...value, [key]: e.target.value })} />
      <button type="button" class="quiet" aria-label=${t.form.removeRow} onClick=${() => onChange(Object.fromEntries(entries.filter(([other]) => other !== key)))}>×</button></div>`)}
    <datalist id=${`${id}-keys`}>${Object.keys(known).map((key) => html`<option key=${key} value=${key}>${String(known[key])}</option>`)}</datalist>
    <button type="button" class="quiet" disabled=${"" in value} onClick=${() => onChange({ ...value, "": "" })}>+ ${t.form.add}</button></div>`;
}

/** What most rows need; the others are behind a fold. */
const USUAL = ["size", "name", "mode", "ip", "mac", "link", "network"];

/** @param {any} props */
function RowFields({ of, id, value, onChange, all }) {
  const usual = of.filter((/** @type {Field} */ inner) => USUAL.includes(inner.name) || value[inner.name] !== undefined);
  const rest = of.filter((/** @type {Field} */ inner) => !usual.includes(inner));
  if (usual.length && rest.length) {
    return html`<${RowFields} of=${usual} id=${id} value=${value} onChange=${onChange} all=${all} />
      <details class="more"><summary>${t.form.more(rest.length)}</summary><div class="row-fields">${rest.map((/** @type {Field} */ inner) => cell(inner))}</div></details>`;
  }
  return html`<div class="row-fields">${of.map((/** @type {Field} */ inner) => cell(inner))}</div>`;

  /** @param {Field} inner */
  function cell(inner) {
    return html`<label key=${inner.name} title=${inner.doc}><span>${inner.name}</span>
    <${Input} field=${inner} id=${`${id}-${inner.name}`} value=${value[inner.name]} all=${all} onChange=${(/** @type {any} */ made) => onChange({ ...value, [inner.name]: made })} /></label>`;
  }
}

/** Disks, NICs, and their changes. @param {any} props */
function Rows({ field, id, value, onChange, all }) {
  const put = (/** @type {number} */ at, /** @type {any} */ row) => onChange(value.map((/** @type {any} */ old, /** @type {number} */ index) => (index === at ? row : old)));
  const isChange = field.kind === "changes";
  return html`<div class="rows" id=${id} role="group">
    ${value.map((/** @type {any} */ row, /** @type {number} */ index) => html`<div class="sub" key=${index}>
      <button type="button" class="quiet corner" aria-label=${t.form.removeRow} onClick=${() => onChange(value.filter((/** @type {any} */ _, /** @type {number} */ at) => at !== index))}>×</button>
      ${isChange && html`<div class="row-fields"><label><span>${t.form.change}</span><${Choice} id=${`${id}-${index}-change`} choices=${field.choices} value=${row.change} standard="" onChange=${(/** @type {string} */ v) => put(index, { ...row, change: v })} /></label>
        <label><span>${t.form.where}</span><input type="text" value=${row.place ?? ""} placeholder="-1" onInput=${(/** @type {any} */ e) => put(index, { ...row, place: e.target.value })} /></label></div>`}
      <${RowFields} of=${field.of} id=${`${id}-${index}`} all=${all} value=${isChange ? row.values ?? {} : row} onChange=${(/** @type {any} */ made) => put(index, isChange ? { ...row, values: made } : made)} /></div>`)}
    <button type="button" class="quiet" onClick=${() => onChange([...value, isChange ? { change: "modify", place: "0", values: {} } : {}])}>+ ${t.form.add}</button></div>`;
}
