// A list of objects: search and filter, sorting, columns, selection, only visible rows drawn.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { KINDS } from "../kinds.js";
import { short } from "../model/format.js";
import { understand } from "../model/filter.js";
import { between, sorted, visible } from "../model/rows.js";
import { remember, route } from "../router.js";
import { lists, load, need, problems } from "../store.js";
import { t } from "../text.js";
import { Actions, CreateButtons } from "./actions.js";
import { Cell, textOf } from "./parts.js";

const ROW = 30;
/** Pixels that a letter takes at most, but for few; and those that a status has for its light. */
const LETTER = 10, LIGHT = 15;

/** @param {string} kind @returns {Set<string>} fields of the columns that are hidden */
function hiddenColumns(kind) {
  try {
    const kept = JSON.parse(localStorage.getItem(`columns.${kind}`) ?? "null");
    if (Array.isArray(kept)) return new Set(kept);
  } catch {
    // What cannot be read counts as not there.
  }
  return new Set(KINDS[kind].columns.filter((column) => column.hidden).map((column) => column.field));
}

/** @param {{kind: string}} props */
export function ListPage({ kind }) {
  const found = KINDS[kind];
  const [text, setText] = useState(route.value.query.get("q") ?? "");
  const [sort, setSort] = useState({ field: found.sort ?? found.key, down: found.down ?? false });
  const [hidden, setHidden] = useState(() => hiddenColumns(kind));
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  // No event tells how many messages were sent.
  useEffect(() => void (found.list ? load(kind) : need(kind)), [kind]);
  const all = lists[kind].value;
  const problem = problems.value[kind];
  const { test, error } = useMemo(() => understand(text, found.columns.map((column) => column.field)), [text, kind]);
  const rows = useMemo(() => {
    const column = found.columns.find((item) => item.field === sort.field);
    return sorted((all ?? []).filter(test), column?.value ?? ((row) => row[sort.field]), sort.down);
  }, [all, test, sort]);
  const type = (/** @type {string} */ typed) => {
    setText(typed);
    remember({ q: typed });
  };
  const columns = found.columns.filter((column) => !hidden.has(column.field));
  const selected = (all ?? []).filter((row) => chosen.has(String(row[found.key])));
  return html`<section class="page list-page">
    <header class="page-head">
      <h1>${found.title} <span class="count" aria-live="polite">${all ? t.list.count(rows.length, all.length) : ""}</span></h1>
      <input id="search" type="search" aria-label=${t.list.searchLabel} placeholder=${t.list.search} value=${text} spellcheck=${false}
        aria-invalid=${error ? "true" : "false"} onInput=${(/** @type {any} */ e) => type(e.target.value)} />
      <${ColumnMenu} kind=${kind} hidden=${hidden} onChange=${setHidden} />
      <${CreateButtons} kind=${kind} />
    </header>
    ${error && html`<p class="problem" role="status">${t.list.filterWrong}${error}</p>`}
    ${selected.length > 0 && html`<div class="selection" role="toolbar" aria-label=${t.list.selected(selected.length)}>
      <b>${t.list.selected(selected.length)}</b><${Actions} kind=${kind} rows=${selected} />
      <button class="quiet" onClick=${() => setChosen(new Set())}>${t.list.clear}</button></div>`}
    ${problem ? html`<p class="problem" role="alert">${problem} <button onClick=${() => load(kind)}>${t.actions.retry}</button></p>`
      : html`<${Grid} kind=${kind} rows=${rows} columns=${columns} sort=${sort} onSort=${setSort} chosen=${chosen} onChoose=${setChosen}
          empty=${all === null ? t.list.loading : all.length ? t.list.noMatch : t.list.none} />`}
  </section>`;
}

/** @param {{kind: string, hidden: Set<string>, onChange: (hidden: Set<string>) => void}} props */
function ColumnMenu({ kind, hidden, onChange }) {
  const toggle = (/** @type {string} */ field) => {
    const made = new Set(hidden);
    if (!made.delete(field)) made.add(field);
    localStorage.setItem(`columns.${kind}`, JSON.stringify([...made]));
    onChange(made);
  };
  return html`<details class="menu"><summary>${t.list.columns}</summary><div class="pop">
    ${KINDS[kind].columns.slice(1).map((column) => html`<label key=${column.field}>
      <input type="checkbox" checked=${!hidden.has(column.field)} onChange=${() => toggle(column.field)} /> ${column.label}</label>`)}
  </div></details>`;
}

/** @param {any} props */
function Grid({ kind, rows, columns, sort, onSort, chosen, onChoose, empty }) {
  const found = KINDS[kind];
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 800 });
  const last = useRef("");
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    let asked = 0;
    const onScroll = () => (asked ||= requestAnimationFrame(() => ((asked = 0), measure())));
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => (watcher.disconnect(), element.removeEventListener("scroll", onScroll));
  }, []);
  const { first, last: end } = visible(rows.length, view.top, view.height, ROW);
  const isBulk = found.actions.some((action) => action.bulk);
  const names = () => rows.map((/** @type {any} */ row) => String(row[found.key]));
  const choose = (/** @type {any} */ event, /** @type {string} */ name) => {
    const made = new Set(chosen);
    const on = !made.has(name);
    const several = event.shiftKey && last.current ? between(names(), last.current, name) : [name];
    for (const one of several) on ? made.add(one) : made.delete(one);
    last.current = name;
    onChoose(made);
  };
  const choice = useRef(choose);
  choice.current = choose;
  const all = rows.length > 0 && rows.every((/** @type {any} */ row) => chosen.has(String(row[found.key])));
  const fields = columns.map((/** @type {any} */ column) => column.field).join();
  const template = `${isBulk ? "34px " : ""}${columns.map((/** @type {any} */ column, /** @type {number} */ index) => (index === 0 && column.right ? `${column.width}px` : `minmax(${column.width ?? 120}px, ${index === 0 ? 2 : 1}fr)`)).join(" ")}`;
  const least = columns.reduce((/** @type {number} */ sum, /** @type {any} */ column) => sum + (column.width ?? 120) + 12, isBulk ? 66 : 20);
  return html`<div class="grid" role="table" aria-label=${found.title} aria-rowcount=${rows.length + 1} ref=${box} tabindex="0">
    <div class="grid-inner" style=${{ "--columns": template, minWidth: `${least}px` }}>
    <div class="grid-head" role="row">
      ${isBulk && html`<span role="columnheader"><input type="checkbox" aria-label=${t.list.selectAll} checked=${all} onChange=${() => onChoose(new Set(all ? [] : names()))} /></span>`}
      ${columns.map((/** @type {any} */ column) => html`<span role="columnheader" key=${column.field} class=${column.right ? "right" : ""}
        aria-sort=${sort.field === column.field ? (sort.down ? "descending" : "ascending") : "none"}>
        <button onClick=${() => onSort({ field: column.field, down: sort.field === column.field && !sort.down })}>${column.label}<i aria-hidden="true">${sort.field === column.field ? (sort.down ? " ▾" : " ▴") : ""}</i></button></span>`)}
    </div>
    <div class="grid-body" role="rowgroup" style=${{ height: `${rows.length * ROW}px` }}>
      ${rows.slice(first, end).map((/** @type {any} */ row, /** @type {number} */ index) => {
        const name = String(row[found.key]);
        return html`<${Line} key=${name} row=${row} name=${name} at=${first + index} kind=${kind} columns=${columns} fields=${fields} isChosen=${chosen.has(name)} choice=${isBulk ? choice : null} />`;
      })}
    </div></div>
    ${rows.length === 0 && html`<p class="empty">${empty}</p>`}
  </div>`;
}

/** One row, which is drawn again only when something in it changes, not when the list is scrolled. @param {any} props */
function Line({ row, name, at, kind, columns, fields, isChosen, choice }) {
  return useMemo(
    () => html`<div role="row" class=${isChosen ? "grid-row chosen" : "grid-row"} aria-rowindex=${at + 2} style=${{ transform: `translateY(${at * ROW}px)` }}>
      ${choice && html`<span role="cell"><input type="checkbox" aria-label=${t.list.select(name)} checked=${isChosen} onClick=${(/** @type {any} */ e) => choice.current(e, name)} /></span>`}
      ${columns.map((/** @type {any} */ column) => html`<span role="cell" key=${column.field} class=${`${column.right ? "right " : ""}${column.kind === "mono" ? "mono " : ""}${isLong(row, column) ? "cut" : ""}`}><${Cell} row=${row} column=${column} kind=${kind} /></span>`)}
    </div>`,
    [row, at, kind, isChosen, fields],
  );
}

/** Whether a cell may need more room than it has; a browser draws cells that it cuts off at a higher price. @param {any} row @param {any} column */
function isLong(row, column) {
  const text = textOf(row, column);
  if (column.kind === "bar" || (column.kind === "tags" && text?.length)) return true;
  const shown = column.kind?.startsWith("ref:") ? short(text ?? "") : String(text ?? "");
  return shown.length * LETTER > column.width - (column.kind === "status" ? LIGHT : 0) || /[^ -~]/.test(shown);
}
