// One object: live state, graphs, disks, NICs, tags, history, events, and all its fields.
import { get, maybe, query } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { KINDS } from "../kinds.js";
import { clock, moment, plain, short, size } from "../model/format.js";
import { touches } from "../model/history.js";
import { mirrorOf } from "../model/mirrors.js";
import { toObjects } from "../model/rows.js";
import { url } from "../router.js";
import { events, healed, health, lists, need, problems } from "../store.js";
import { t } from "../text.js";
import { Actions } from "./actions.js";
import { Graphs } from "./graphs.js";
import { Chain, JobButtons, JobLog } from "./dock.js";
import { Backups, Snapshots } from "./copies.js";
import { Cell, Ref, Status, Table } from "./parts.js";
import { IfItDied } from "./recovery.js";

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
      ${kind === "node" && html`<${Guests} row=${row} /><${IfItDied} key=${row.name} row=${row} />`}
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
  useEffect(() => {
    const load = async () => (row.status === "running" ? get(`/2/instances/${encodeURIComponent(row.name)}/consoles`) : null);
    void load().then(setFound, () => setFound(null));
  }, [row.name, row.status, healed.value]);
  return html`<span class="actions">${(found?.kinds ?? []).map((/** @type {"vnc" | "serial"} */ kind) => {
    const users = found.open.filter((/** @type {any} */ one) => one.kind === kind).map((/** @type {any} */ one) => one.user);
    return html`<a class="button" key=${kind} target="_blank" rel="noopener" title=${users.length ? t.detail.openBy(users.join(", ")) : ""} href=${`/ui/console.html?${new URLSearchParams({ instance: row.name, kind, mode: "control" })}`}>${t.actions[kind]}</a>`;
  })}</span>`;
}

/** @param {{row: Record<string, any>}} props */
function InstanceParts({ row }) {
  useEffect(() => void need("disk"), []);
  const disks = (lists.disk.value ?? []).filter((disk) => disk.instance === row.name).sort((a, b) => a.index - b.index);
  const macs = row["nic.macs"] ?? [];
  const at = (/** @type {string} */ field, /** @type {number} */ index) => plain((row[field] ?? [])[index]);
  return html`<section class="panel"><h2>${t.detail.disks}</h2>
    <${Table} empty=${t.list.none} head=${[t.fields.index, t.fields.size, t.fields.template, t.fields.nodes, t.detail.mirrors, t.fields.uuid]}
      rows=${disks.map((disk) => [disk.index, size(disk.size), disk.template, (disk.nodes ?? []).map(short).join(", ") || "–", html`<${Mirror} disk=${disk} />`, html`<a class="mono" href=${url("disks", disk.uuid)} title=${disk.uuid}>${disk.uuid.slice(0, 8)}</a>`])} /></section>
  <section class="panel"><h2>${t.detail.nics}</h2>
    <${Table} empty=${t.list.none} head=${["", t.detail.mac, t.detail.ip, t.fields.mode, t.detail.link, t.detail.networkName]}
      rows=${macs.map((/** @type {string} */ mac, /** @type {number} */ index) => [index, mac, at("nic.ips", index), at("nic.modes", index), at("nic.links", index), at("nic.networks.names", index)])} /></section>
  <${Snapshots} row=${row} /><${Backups} row=${row} />
  <${Parameters} name=${row.name} mark=${row.serial_no} />`;
}

/** @param {{disk: Record<string, any>}} props */
function Mirror({ disk }) {
  const found = mirrorOf(disk, health.value);
  return found ? html`<${Status} value=${found.level} text=${found.text || t.detail.inSync} />` : html`<span>–</span>`;
}

/** @param {{name: string, mark: any}} props */
function Parameters({ name, mark }) {
  const [row, setRow] = useState(/** @type {any} */ (null));
  useEffect(() => void query("instance", ["hvparams", "beparams", "osparams", "custom_hvparams", "custom_beparams"], ["==", "name", name]).then((answer) => setRow(toObjects(answer)[0]), () => undefined), [name, mark, healed.value]);
  const pairs = Object.entries({ ...row?.beparams, ...row?.hvparams, ...row?.osparams });
  const own = { ...row?.custom_beparams, ...row?.custom_hvparams };
  return html`<details class="panel"><summary>${t.detail.parameters}</summary><dl class="facts">${pairs.map(([key, value]) => html`<div key=${key} class=${key in own ? "own" : ""}><dt class="mono">${key}</dt><dd class="mono">${plain(value)}</dd></div>`)}</dl></details>`;
}

/** @param {{row: Record<string, any>}} props */
function Guests({ row }) {
  useEffect(() => void need("instance"), []);
  const guests = (lists.instance.value ?? []).filter((item) => item.pnode === row.name || (item.snodes ?? []).includes(row.name));
  return html`<section class="panel"><h2>${t.detail.guests}</h2><${Table} empty=${t.list.none} head=${[t.fields.name, t.fields.status, t.fields.role, t.fields.memory]}
    rows=${guests.map((item) => [html`<${Ref} kind="instance" name=${item.name} full=${true} />`, html`<${Status} value=${item.status} />`, item.pnode === row.name ? t.detail.primary : t.detail.secondary, size(item["be/maxmem"])])} /></section>`;
}

/** @param {{row: Record<string, any>}} props */
function Members({ row }) {
  return html`<section class="panel"><h2>${t.fields.nodes}</h2><ul class="plain">${(row.node_list ?? []).map((/** @type {string} */ name) => html`<li key=${name}><${Ref} kind="node" name=${name} full=${true} /></li>`)}</ul></section>`;
}

/** Who changed what, in which job. @param {{kind: string, name: string, mark?: any}} props */
export function History({ kind, name, mark }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const newest = events.value.find((event) => event.kind === kind && event.objects?.includes(name))?.id;
  useEffect(() => {
    const timer = setTimeout(() => void maybe("/2/history", [["object", name], ["limit", "100"]]).then(setFound, () => setFound(null)), 200);
    return () => clearTimeout(timer);
  }, [name, mark, newest, healed.value]);
  return html`<section class="panel"><h2>${t.detail.history}</h2><${Changes} found=${found} /></section>`;
}

/** @param {{found: any, most?: number}} props the answer of `/2/history` */
export function Changes({ found, most = 100 }) {
  const changes = [...(found?.changes ?? [])].reverse().slice(0, most);
  if (!changes.length) return html`<p class="empty">${t.detail.noHistory}</p>`;
  return html`<ol class="changes">${changes.map((change) => html`<li key=${change.serial}>
    <time>${moment(change.time)}</time> <b>${change.user || "–"}</b> <span>${change.name}</span>${" "}
    ${change.job && html`<a href=${url("jobs", String(change.job))}>${t.detail.inJob} ${change.job}</a>`}${change.reason ? ` — ${change.reason}` : ""}
    ${touches(change, found.names).map((touch, index) => html`<${Touch} key=${index} touch=${touch} />`)}</li>`)}</ol>`;
}

/** One object that a change touched, with its old and new values. @param {{touch: import("../model/history.js").Touch}} props */
function Touch({ touch }) {
  return html`<small>${touch.title}${touch.values.length > 0 && ": "}${touch.values.map(({ key, before, after }, index) => html`<span class="touch" key=${key}>${index > 0 && ", "}<span class="mono">${key}</span> ${before !== null && html`<del>${before}</del>`}${before !== null && after !== null && " → "}${after}</span>`)}${touch.more > 0 && ` ${t.detail.others(touch.more)}`}</small>`;
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
  }, [job.id, job.status, healed.value]);
  return html`<section class="page detail"><header class="page-head"><h1><a class="up" href=${url("jobs")}>${t.kinds.jobs}</a> <span class="name">${job.id}</span> <${Status} value=${job.status} /></h1><${JobButtons} job=${job} /></header>
    <div class="panels">
      <section class="panel"><h2>${t.detail.summary}</h2><dl class="facts">${KINDS.job.columns.map((column) => html`<div key=${column.field}><dt>${column.label}</dt><dd><${Cell} row=${job} column=${{ ...column, kind: column.kind === "link" ? "" : column.kind }} kind="job" /></dd></div>`)}</dl></section>
      ${why?.waits_for && html`<section class="panel wide"><h2>${t.jobs.why}</h2><${Chain} why=${why} /></section>`}
      <section class="panel wide"><h2>${t.jobs.log}</h2><${JobLog} job=${job} /></section>
      <section class="panel wide"><h2>${t.jobs.opcodes}</h2>${(whole?.ops ?? []).map((/** @type {any} */ op, /** @type {number} */ index) => html`<div key=${index}><h3>${op.OP_ID} ${whole.opstatus?.[index]}</h3><pre tabindex="0">${JSON.stringify(op, null, 1)}</pre>
        ${whole.opresult?.[index] != null && html`<h3>${t.jobs.result}</h3><pre tabindex="0">${JSON.stringify(whole.opresult[index], null, 1)}</pre>`}</div>`)}</section>
    </div></section>`;
}
