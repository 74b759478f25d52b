// What is kept of the disks of an instance: snapshots and backups.
import { html } from "../html.js";
import { BACKUP, SNAPSHOT } from "../kinds.js";
import { moment, size } from "../model/format.js";
import { url } from "../router.js";
import { t } from "../text.js";
import { PartButton } from "./actions.js";
import { Status, Table } from "./parts.js";

/** @typedef {Record<string, any>} Row */

/** @param {{row: Row}} props an instance */
export function Snapshots({ row }) {
  const button = (/** @type {any} */ action, /** @type {string} */ name) => html`<${PartButton} key=${action.label} action=${action} row=${row} typed=${{ snapshot_name: name }} subject=${name} />`;
  return html`<section class="panel"><h2>${t.detail.snapshots} <span class="tabs"><${PartButton} action=${SNAPSHOT.create} row=${row} /></span></h2>
    <${Table} empty=${t.detail.noSnapshots} head=${[t.fields.name, t.detail.made, t.fields.size, t.fields.state, ""]}
      rows=${(row.snapshots ?? []).map((/** @type {Row} */ one) => [
        html`<span title=${one.description}>${one.name}</span>`, moment(one.created), size(one.size), html`<${Status} value=${one.state === "ready" ? one.consistency : one.state} />`,
        html`<span class="row-buttons">${button(SNAPSHOT.revert, one.name)}${button(SNAPSHOT.remove, one.name)}</span>`,
      ])} /></section>`;
}

/** @param {{row: Row}} props an instance */
export function Backups({ row }) {
  const button = (/** @type {any} */ action) => html`<${PartButton} key=${action.label} action=${action} row=${row} />`;
  const last = row["backup.last"];
  const facts = [
    [t.detail.lastBackup, last ? `${last} (${moment(row["backup.time"])})` : t.detail.noBackups],
    [t.detail.proven, last && (row["backup.verified"] ? `${row["backup.verified"]} (${moment(row["backup.verified_time"])})` : t.detail.neverProven)],
    [t.detail.schedule, row["backup.every"] && t.detail.every(row["backup.every"], row["backup.at"])],
    [t.detail.repository, row["backup.repository"]],
  ].filter(([, value]) => value);
  return html`<section class="panel"><h2>${t.detail.backups} <span class="tabs">${button(BACKUP.run)}${button(BACKUP.schedule)}</span></h2>
    <dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${last && html`<div class="buttons"><a class="button" href=${`${url("backups")}?${new URLSearchParams({ q: row.name })}`}>${t.detail.allBackups}</a>${button(BACKUP.verify)}${button(BACKUP.restore)}</div>`}</section>`;
}
