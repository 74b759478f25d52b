// The overview: health, capacity, what runs, what was changed.
import { maybe } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { ago, plain, short, size } from "../model/format.js";
import { capacity, findings, guestsNotAsWanted, lateBackups } from "../model/overview.js";
import { url } from "../router.js";
import { activeJobs, cluster, events, healed, health, lists, need, now } from "../store.js";
import { t } from "../text.js";
import { ClusterActions } from "./actions.js";
import { Changes } from "./detail.js";
import { Bar, Elapsed, Ref, Status } from "./parts.js";

const o = t.overview;

export function OverviewPage() {
  const [changes, setChanges] = useState(/** @type {any} */ (null));
  const newest = events.value.find((event) => event.kind !== "job")?.id;
  useEffect(() => {
    void need("node");
    void need("instance");
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => void maybe("/2/history", [["limit", "15"]]).then(setChanges, () => undefined), 300);
    return () => clearTimeout(timer);
  }, [newest, healed.value]);
  const info = cluster.value ?? {};
  return html`<section class="page overview"><header class="page-head"><h1>${info.name ?? t.nav.overview}</h1><span class="of">${info.software_version} · ${t.roles.M} ${short(info.master)} · ${plain(info.enabled_hypervisors)}</span><span class="grow"></span><${ClusterActions} name=${info.name} /></header>
    <div class="panels">
      <${Health} />
      <section class="panel"><h2><a href=${url("jobs")}>${o.running}</a></h2>${activeJobs.value.length ? html`<ul class="plain jobs">${activeJobs.value.slice(0, 12).map((job) => html`<li key=${job.id}><a href=${url("jobs", String(job.id))}>${job.id}</a> <${Status} value=${job.status} /> <span class="what">${plain(job.summary)}</span> <${Elapsed} job=${job} /></li>`)}</ul>` : html`<p class="empty">${o.jobsNone}</p>`}</section>
      <${Capacity} />
      <section class="panel wide"><h2>${o.changes}</h2><${Changes} found=${changes} most=${15} /></section>
    </div></section>`;
}

function Health() {
  const found = findings(health.value, now.value);
  const nodes = lists.node.value ?? [];
  const down = nodes.filter((node) => node.state === "unreachable");
  const wrong = guestsNotAsWanted(lists.instance.value ?? []);
  const late = lateBackups(lists.instance.value ?? [], now.value);
  const isGood = !down.length && !wrong.length && !late.length && !found.rows.length;
  return html`<section class="panel"><h2>${o.health}</h2>
    ${isGood && html`<p><${Status} value="ok" text=${o.allGood} /></p>`}
    <ul class="plain">
      ${down.length > 0 && html`<li><${Status} value="error" /> ${o.nodesDown}: ${down.map((node) => html` <${Ref} kind="node" name=${node.name} />`)}</li>`}
      ${wrong.length > 0 && html`<li><${Status} value="warning" /> ${o.guestsDown}: ${wrong.slice(0, 8).map((row) => html` <${Ref} kind="instance" name=${row.name} />`)}</li>`}
      ${late.length > 0 && html`<li><${Status} value="warning" /> ${o.lateBackups}: ${late.slice(0, 8).map((row) => html` <${Ref} kind="instance" name=${row.name} /> (${row["backup.time"] ? ago(row["backup.time"], now.value) : t.never})`)}</li>`}
      ${found.rows.map((item, index) => html`<li key=${index}><${Status} value=${item.level} /> <b>${item.code}</b> ${item.text} ${item.object && html`<span class="mono">${item.object}</span>`}</li>`)}
    </ul>
    <dl class="facts">${found.facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`;
}

function Capacity() {
  const found = capacity(lists.node.value ?? [], lists.instance.value ?? [], health.value);
  return html`<section class="panel"><h2>${o.capacity}</h2><dl class="facts meters">
    <div><dt><a href=${url("nodes")}>${o.nodes}</a></dt><dd>${found.online} / ${found.nodes}</dd></div>
    <div><dt><a href=${url("instances")}>${o.instances}</a></dt><dd>${found.running} / ${found.instances} ${o.running1}</dd></div>
    <div><dt>${o.memory}</dt><dd><${Bar} part=${found.memory.part} text=${t.fields.usedOf(size(found.memory.used), size(found.memory.total))} /></dd></div>
    <div><dt>${o.disk}</dt><dd><${Bar} part=${found.disk.part} text=${t.fields.usedOf(size(found.disk.used), size(found.disk.total))} /></dd></div>
    <div><dt>${o.cpu}</dt><dd><${Bar} part=${Math.min(1, found.cpu.part)} text=${`${found.cpu.used} / ${found.cpu.total}`} /></dd></div>
    ${found.nPlusOne !== null && html`<div><dt>${o.nPlusOne}</dt><dd><${Status} value=${found.nPlusOne ? "ok" : "warning"} text=${found.nPlusOne ? o.nPlusOneGood : o.nPlusOneBad} /></dd></div>`}
  </dl></section>`;
}
