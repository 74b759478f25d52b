// Small pieces that many pages share.
import { html } from "../html.js";
import { duration, seconds, short, tone } from "../model/format.js";
import { now } from "../store.js";
import { url } from "../router.js";
import { KINDS } from "../kinds.js";

/** @param {{value: string | null, text?: string}} props what is shown, when it is not the status itself */
export function Status({ value, text }) {
  const status = value ?? "–";
  return html`<span class=${`status ${tone(status)}`}><i aria-hidden="true"></i>${text ?? status.replaceAll("_", " ")}</span>`;
}

/** @param {{part: number, text: string}} props how full something is, 0 to 1 */
export function Bar({ part, text }) {
  const level = part > 0.92 ? "bad" : part > 0.8 ? "warn" : "";
  return html`<span class="meter"><svg class=${`bar ${level}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width="100" height="6" /><rect class="fill" width=${Math.round(part * 100)} height="6" /></svg><span>${text}</span></span>`;
}

/** @param {{tags: string[] | null}} props */
export function Tags({ tags }) {
  return html`<span class="tags">${(tags ?? []).map((tag) => html`<span class="tag" key=${tag}>${tag}</span>`)}</span>`;
}

/** @param {{kind: string, name: string | null, full?: boolean}} props */
export function Ref({ kind, name, full }) {
  if (!name) return html`<span>–</span>`;
  return html`<a href=${url(KINDS[kind].path, name)} title=${name}>${full ? name : short(name)}</a>`;
}

/** How long a job took, or runs already. @param {{job: Record<string, any>}} props */
export function Elapsed({ job }) {
  const begin = seconds(job.start_ts ?? job.received_ts);
  const end = seconds(job.end_ts) ?? now.value;
  return html`<span>${begin ? duration(end - begin) : "–"}</span>`;
}

/** What a cell shows, before it is drawn. @param {Record<string, any>} row @param {import("../kinds.js").Column} column */
export function textOf(row, column) {
  if (column.show) return column.show(row);
  return column.value ? column.value(row) : row[column.field];
}

/** One cell of a list. @param {{row: Record<string, any>, column: import("../kinds.js").Column, kind: string}} props */
export function Cell({ row, column, kind }) {
  const value = column.value ? column.value(row) : row[column.field];
  const text = textOf(row, column);
  switch (column.kind) {
    case "link":
      return html`<a href=${url(KINDS[kind].path, String(row[KINDS[kind].key]))}>${text}</a>`;
    case "status":
      return html`<${Status} value=${value} />`;
    case "bar":
      return html`<${Bar} part=${value ?? 0} text=${text} />`;
    case "tags":
      return value?.length ? html`<${Tags} tags=${value} />` : html`<span>–</span>`;
    case "duration":
      return html`<${Elapsed} job=${row} />`;
    default:
      if (column.kind?.startsWith("ref:")) return html`<${Ref} kind=${column.kind.slice(4)} name=${value} />`;
      return text == null || text === "" ? "–" : String(text);
  }
}

/** @param {{head: any[], rows: any[][], empty: string}} props */
export function Table({ head, rows, empty }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table><thead><tr>${head.map((cell, index) => html`<th key=${index} scope="col">${cell}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${index}>${row.map((cell, at) => html`<td key=${at}>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}
