// One object: live state, graphs, disks, NICs, tags, history, events, and all its fields.
import { get, maybe, query } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { KINDS } from "../kinds.js";
import { clock, moment, plain, size } from "../model/format.js";
import { toObjects } from "../model/rows.js";
import { url } from "../router.js";
import { events, lists, need, problems } from "../store.js";
import { t } from "../text.js";
import { Actions } from "./actions.js";
import { Graphs } from "./graphs.js";
import { Chain, JobButtons, JobLog } from "./dock.js";
import { Cell, Ref, Status, Tags } from "./parts.js";

/** @param {{kind: string, name: string}} props */
export function DetailPage({ kind, name }) {
  const found = KINDS[kind];
  useEffect(() => void need(kind), [kind]);
  const rows = lists[kind].value;
  const row = (rows ?? []).find((item) => String(item[found.key]) === name || item.uuid === name);
  if (!row) return html`<section class="page"><p class="empty">${rows === null ? problems.value[kind] || t.list.loading : t.detail.missing}</p></section>`;
  if (kind === "job") return html`<${JobPage} job=${row} />`;
  const state = row.status ?? row.state;
  return html`<section class="page detail">
    <header class="page-head"><h1><a class="up" href=${url(found.path)}>${found.title}</a> <span class="name">${row.name || name}</span> ${state && html`<${Status} value=${state} />`}</h1>
      ${kind === "instance" && html`<${Consoles} row=${row} />`}<${Actions} kind=${kind} rows=${[row]} /></header>
    <div class="panels">
      <section class="panel"><h2>${t.detail.summary}</h2><dl class="facts">${found.columns.map((column) => html`<div key=${column.field}><dt>${column.label}</dt><dd class=${column.kind === "mono" ? "mono" : ""}><${Cell} row=${row} column=${column.kind === "link" ? { ...column, kind: "mono" } : column} kind=${kind} /></dd></div>`)}</dl></section>
      ${kind === "instance" && html`<${InstanceParts} row=${row} />`}
      ${kind === "node" && html`<${Guests} row=${row} />`}
      ${kind === "group" && html`<${Members} row=${row} />`}
      ${(kind === "instance" || kind === "node") && html`<${Graphs} key=${name} path=${`/2/${found.path}/${encodeURIComponent(row.name)}/samples`} />`}
      ${found.history && html`<${History} kind=${found.resource} name=${kind === "disk" ? row.uuid : row.name} mark=${row.serial_no ?? row.status} />`}
      <${EventList} name=${row.name ?? name} uuid=${row.uuid} />
      <details class="panel"><summary>${t.detail.all}</summary><dl class="facts">${found.fields.map((field) => html`<div key=${field}><dt class="mono">${field}</dt><dd class="mono">${plain(row[field])}</dd></div>`)}</dl></details>
    </div></section>`;
}

/** @param {{row: Record<string, any>}} props */
function Consoles({ row }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  useEffect(() => void maybe(`/2/instances/${encodeURIComponent(row.name)}/consoles`).then(setFound, () => undefined), [row.name, row.status]);
  const kinds = Array.isArray(found) ? found.map((item) => item.kind ?? item) : Object.keys(found?.kinds ?? {});
  const names = Array.isArray(found?.kinds) ? found.kinds.map((/** @type {any} */ item) => item.kind ?? item) : kinds;
  if (row.status !== "running" || !names.length) return null;
  return html`<span class="actions">${names.map((/** @type {string} */ kind) => html`<a class="button" key=${kind} target="_blank" rel="noopener" href=${`/ui/console.html?${new URLSearchParams({ instance: row.name, kind, mode: "control" })}`}>${kind === "vnc" ? t.actions.vnc : t.actions.serial}</a>`)}</span>`;
}

/** @param {{row: Record<string, any>}} props */
function InstanceParts({ row }) {
  useEffect(() => void need("disk"), []);
  const disks = (lists.disk.value ?? []).filter((disk) => disk.instance === row.name).sort((a, b) => a.index - b.index);
  const macs = row["nic.macs"] ?? [];
  const at = (/** @type {string} */ field, /** @type {number} */ index) => plain((row[field] ?? [])[index]);
  return html`<section class="panel"><h2>${t.detail.disks}</h2>
    <${Table} empty=${t.list.none} head=${[t.fields.index, t.fields.size, t.fields.template, t.fields.nodes, t.fields.uuid]}
      rows=${disks.map((disk) => [disk.index, size(disk.size), disk.template, plain(disk.nodes), html`<${Ref} kind="disk" name=${disk.uuid} full=${true} />`])} /></section>
  <section class="panel"><h2>${t.detail.nics}</h2>
    <${Table} empty=${t.list.none} head=${["", t.detail.mac, t.detail.ip, t.fields.mode, t.detail.link, t.detail.networkName]}
      rows=${macs.map((/** @type {string} */ mac, /** @type {number} */ index) => [index, mac, at("nic.ips", index), at("nic.modes", index), at("nic.links", index), at("nic.networks.names", index)])} /></section>
  <${Parameters} name=${row.name} mark=${row.serial_no} />`;
}

/** @param {{name: string, mark: any}} props */
function Parameters({ name, mark }) {
  const [row, setRow] = useState(/** @type {any} */ (null));
  useEffect(() => void query("instance", ["hvparams", "beparams", "osparams", "custom_hvparams", "custom_beparams"], ["==", "name", name]).then((answer) => setRow(toObjects(answer)[0]), () => undefined), [name, mark]);
  const pairs = Object.entries({ ...row?.beparams, ...row?.hvparams, ...row?.osparams });
  const own = { ...row?.custom_beparams, ...row?.custom_hvparams };
  return html`<details class="panel"><summary>${t.detail.parameters}</summary><dl class="facts">${pairs.map(([key, value]) => html`<div key=${key} class=${key in own ? "own" : ""}><dt class="mono">${key}</dt><dd class="mono">${plain(value)}</dd></div>`)}</dl></details>`;
}

/** @param {{row: Record<string, any>}} props */
function Guests({ row }) {
  useEffect(() => void need("instance"), []);
  const guests = (lists.instance.value ?? []).filter((item) => item.pnode === row.name || (item.snodes ?? []).includes(row.name));
  return html`<section class="panel"><h2>${t.detail.guests}</h2><${Table} empty=${t.list.none} head=${[t.fields.name, t.fields.status, t.fields.role, t.fields.memory]}
    rows=${guests.map((item) => [html`<${Ref} kind="instance" name=${item.name} full=${true} />`, html`<${Status} value=${item.status} />`, item.pnode === row.name ? t.fields.primaries : t.fields.secondaries, size(item["be/maxmem"])])} /></section>`;
}

/** @param {{row: Record<string, any>}} props */
function Members({ row }) {
  return html`<section class="panel"><h2>${t.fields.nodes}</h2><ul class="plain">${(row.node_list ?? []).map((/** @type {string} */ name) => html`<li key=${name}><${Ref} kind="node" name=${name} full=${true} /></li>`)}</ul></section>`;
}

/** @param {{head: any[], rows: any[][], empty: string}} props */
export function Table({ head, rows, empty }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table><thead><tr>${head.map((cell, index) => html`<th key=${index} scope="col">${cell}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${index}>${row.map((cell, at) => html`<td key=${at}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** Who changed what, in which job. @param {{kind: string, name: string, mark?: any}} props */
export function History({ kind, name, mark }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const newest = events.value.find((event) => event.kind === kind && event.objects?.includes(name))?.id;
  useEffect(() => {
    const timer = setTimeout(() => void maybe("/2/history", [["object", name], ["limit", "100"]]).then(setFound, () => setFound(null)), 200);
    return () => clearTimeout(timer);
  }, [name, mark, newest]);
  return html`<section class="panel"><h2>${t.detail.history}</h2><${Changes} found=${found} /></section>`;
}

/** @param {{found: any, most?: number}} props */
export function Changes({ found, most = 100 }) {
  const changes = [...(found?.changes ?? [])].reverse().slice(0, most);
  if (!changes.length) return html`<p class="empty">${t.detail.noHistory}</p>`;
  return html`<ol class="changes">${changes.map((change) => html`<li key=${change.serial}>
    <time>${moment(change.time)}</time> <b>${change.user || "–"}</b> <span>${change.name}</span>${" "}
    ${change.job && html`<a href=${url("jobs", String(change.job))}>${t.detail.inJob} ${change.job}</a>`}
    <small>${(change.objects ?? []).map(describeTouch).join("; ")}${reasonOf(change.reason)}</small></li>`)}</ol>`;
}

/** @param {any} touch */
function describeTouch(touch) {
  const values = touch.changes ?? touch.values ?? touch.differences ?? touch.members ?? [];
  const parts = (Array.isArray(values) ? values : Object.entries(values)).slice(0, 6).map((/** @type {any} */ item) =>
    Array.isArray(item) ? `${[item[0]].flat().join(".")}: ${item.slice(1).flat(1).map(plain).join(" → ")}` : `${item.member ?? item.name ?? item.path ?? ""}: ${plain(item.before ?? item.old)} → ${plain(item.after ?? item.new)}`,
  );
  return `${touch.name ?? touch.uuid ?? ""} ${touch.change ?? ""} ${parts.join(", ")}`.trim();
}

/** @param {any} reason */
function reasonOf(reason) {
  const own = (Array.isArray(reason) ? reason : []).find((entry) => entry[0] === "gnt:user" || /client/.test(entry[0]));
  return own?.[1] ? ` — ${own[1]}` : "";
}

/** @param {{name: string, uuid?: string}} props */
function EventList({ name, uuid }) {
  const mine = events.value.filter((event) => event.objects?.includes(name) || event.objects?.includes(uuid)).slice(0, 30);
  if (!mine.length) return null;
  return html`<section class="panel"><h2>${t.detail.events}</h2><ol class="changes">${mine.map((event) => html`<li key=${event.id}><time>${clock(event.time)}</time> <b>${event.kind}</b> <span>${event.change}</span>
    <small>${event.data?.message ?? event.data?.status ?? plain(event.data?.keys)}</small></li>`)}</ol></section>`;
}

/** @param {{job: Record<string, any>}} props */
function JobPage({ job }) {
  const [whole, setWhole] = useState(/** @type {any} */ (null));
  const [why, setWhy] = useState(/** @type {any} */ (null));
  useEffect(() => {
    void get(`/2/jobs/${job.id}`).then(setWhole, () => undefined);
    void get(`/2/jobs/${job.id}/why`).then(setWhy, () => setWhy(null));
  }, [job.id, job.status]);
  return html`<section class="page detail"><header class="page-head"><h1><a class="up" href=${url("jobs")}>${t.kinds.jobs}</a> <span class="name">${job.id}</span> <${Status} value=${job.status} /></h1><${JobButtons} job=${job} /></header>
    <div class="panels">
      <section class="panel"><h2>${t.detail.summary}</h2><dl class="facts">${KINDS.job.columns.map((column) => html`<div key=${column.field}><dt>${column.label}</dt><dd><${Cell} row=${job} column=${{ ...column, kind: column.kind === "link" ? "" : column.kind }} kind="job" /></dd></div>`)}</dl></section>
      ${why?.waits_for && html`<section class="panel wide"><h2>${t.jobs.why}</h2><${Chain} why=${why} /></section>`}
      <section class="panel wide"><h2>${t.jobs.log}</h2><${JobLog} job=${job} /></section>
      <section class="panel wide"><h2>${t.jobs.opcodes}</h2>${(whole?.ops ?? []).map((/** @type {any} */ op, /** @type {number} */ index) => html`<div key=${index}><h3>${op.OP_ID} ${whole.opstatus?.[index]}</h3><pre>${JSON.stringify(op, null, 1)}</pre>
        ${whole.opresult?.[index] != null && html`<h3>${t.jobs.result}</h3><pre>${JSON.stringify(whole.opresult[index], null, 1)}</pre>`}</div>`)}</section>
    </div></section>`;
}
export { Tags };
