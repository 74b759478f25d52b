// The map of the cluster: drag a guest to another node to migrate it.
import { call, resultOf } from "../api.js";
import { html, signal, useEffect } from "../html.js";
import { KINDS } from "../kinds.js";
import { short, size, tone } from "../model/format.js";
import { racks, verdicts } from "../model/map.js";
import { url } from "../router.js";
import { lists, need } from "../store.js";
import { t } from "../text.js";
import { open } from "./actions.js";
import { Status } from "./parts.js";

/** The guest that is dragged or chosen, and what the allocator thinks of each node. @type {{value: null | {name: string, node: string, verdicts: Map<string, any> | null, problem: string}}} */
const held = signal(/** @type {any} */ (null));

/** @param {Record<string, any>} row */
async function hold(row) {
  held.value = { name: row.name, node: row.pnode, verdicts: null, problem: "" };
  try {
    const body = { memory: row["be/maxmem"], vcpus: row["be/vcpus"], disk: Math.max(1, ...(row["disk.sizes"] ?? [1])), disk_template: row.disk_template, group_name: row["pnode.group"] };
    const answer = await resultOf(await call("PUT", "/2/placement/place", { body }));
    if (held.value?.name === row.name) held.value = { ...held.value, verdicts: verdicts(answer) };
  } catch (error) {
    if (held.value?.name === row.name) held.value = { ...held.value, problem: /** @type {Error} */ (error).message };
  }
}

/** @param {string} node */
function drop(node) {
  const row = (lists.instance.value ?? []).find((item) => item.name === held.value?.name);
  held.value = null;
  if (!row || row.pnode === node) return;
  const action = KINDS.instance.actions.find((item) => item.label === (row.status === "running" ? t.actions.migrate : t.actions.failover));
  // Mirrored disks go to their secondary node, which needs no name.
  const typed = row.disk_template === "drbd" && (row.snodes ?? []).includes(node) ? {} : { target_node: node };
  if (action) open.value = { action, kind: "instance", rows: [row], typed };
}

export function MapPage() {
  useEffect(() => {
    void need("node");
    void need("instance");
    return () => void (held.value = null);
  }, []);
  const found = racks(lists.node.value ?? [], lists.instance.value ?? []);
  const now = held.value;
  return html`<section class="page map" onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Escape" && (held.value = null)}><header class="page-head"><h1>${t.map.title}</h1>
    <span class="of" role="status">${now ? `${now.name}: ${now.problem || (now.verdicts ? t.map.choose : t.map.asking)}` : t.map.help}</span></header>
    <div class="racks">${found.map((group) => html`<section class="rack" key=${group.name}><h2><a href=${url("groups", group.name)}>${group.name}</a> <span class="count">${group.nodes.length}</span></h2>
      ${group.nodes.map((node) => html`<${Node} key=${node.name} node=${node} />`)}</section>`)}</div></section>`;
}

/** @param {{node: import("../model/map.js").NodeBar}} props */
function Node({ node }) {
  const now = held.value;
  const verdict = now && now.node !== node.name ? now.verdicts?.get(node.name) : undefined;
  const isTarget = Boolean(now && now.node !== node.name && node.state === "online");
  return html`<div class=${`map-node ${node.state} ${verdict ? (verdict.fits ? "fits" : "refused") : ""} ${isTarget ? "target" : ""}`}
    onDragOver=${(/** @type {DragEvent} */ e) => isTarget && e.preventDefault()} onDrop=${(/** @type {DragEvent} */ e) => (e.preventDefault(), drop(node.name))}>
    <div class="map-head"><a href=${url("nodes", node.name)}>${short(node.name)}</a> ${node.state !== "online" && html`<${Status} value=${node.state} />`}
      ${verdict && html`<small class="verdict" title=${verdict.text}>${verdict.best ? "★ " : ""}${verdict.text}</small>`}
      ${isTarget && html`<button class="quiet" onClick=${() => drop(node.name)}>${t.map.to(short(now?.name), short(node.name))}</button>`}
      <span class="of">${size(node.memoryFree)} ${t.map.empty}</span></div>
    <div class="guests">
      ${node.system > 0 && html`<span class="piece system" style=${{ flexGrow: node.system }} title=${t.map.system}></span>`}
      ${node.guests.map((guest) => html`<button key=${guest.name} class=${`piece ${tone(guest.status)} ${now?.name === guest.name ? "held" : ""}`} style=${{ flexGrow: Math.max(0.01, guest.share) }} draggable=${true} title=${`${guest.name} · ${guest.status} · ${size(guest.memory)}`}
        onDragStart=${(/** @type {DragEvent} */ e) => (e.dataTransfer?.setData("text/plain", guest.name), hold(rowOf(guest.name)))} onDragEnd=${() => (held.value = null)} onClick=${() => hold(rowOf(guest.name))}>${short(guest.name)}</button>`)}
      <span class="piece room" style=${{ flexGrow: Math.max(0, 1 - node.parts.memory) }}></span>
    </div>
    <div class="thin">${/** @type {const} */ (["memory", "disk", "cpu"]).map((name) => html`<span key=${name}><em>${{ memory: t.map.mem, disk: t.map.disk, cpu: t.map.cpu }[name]}</em><svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="4" /><rect class="fill" width=${Math.round(node.parts[name] * 100)} height="4" /></svg> ${Math.round(node.parts[name] * 100)} %</span>`)}</div></div>`;
}

/** @param {string} name */
function rowOf(name) {
  return (lists.instance.value ?? []).find((item) => item.name === name) ?? { name };
}
