// Graphs of the samples that nodes keep.
import uPlot from "../../vendor/uplot.js";
import { maybe } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { bytes } from "../model/format.js";
import { series, timeLabels } from "../model/samples.js";
import { t } from "../text.js";

/** @param {{path: Api.Path<"GET">}} props of samples */
export function Graphs({ path }) {
  const [range, setRange] = useState("hour");
  const [found, setFound] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let gone = false;
    const load = () => maybe(path, [["range", range]]).then((answer) => gone || setFound(answer), () => undefined);
    void load();
    const timer = setInterval(load, 15_000);
    return () => ((gone = true), clearInterval(timer));
  }, [path, range]);
  const plots = found ? series(found) : [];
  return html`<section class="panel wide"><h2>${t.detail.graphs} <span class="tabs" role="group">${["hour", "day", "month"].map((name) => html`<button key=${name} class="quiet" aria-pressed=${range === name} onClick=${() => setRange(name)}>${t.detail[/** @type {"hour" | "day" | "month"} */ (name)]}</button>`)}</span></h2>
    ${plots.length ? html`<div class="graphs">${plots.map((plot) => html`<${Graph} key=${plot.title} plot=${plot} />`)}</div>` : html`<p class="empty">${t.detail.noSamples}</p>`}</section>`;
}

const COLOURS = ["--graph-1", "--graph-2", "--graph-3", "--graph-4"];

/** @param {string} unit @param {number | null} value */
function show(unit, value) {
  if (value == null) return "–";
  if (unit.startsWith("bytes")) return bytes(value) + unit.slice(5);
  const number = value >= 100 ? Math.round(value) : Number(value.toFixed(2));
  return unit.startsWith("operations") ? number + unit.slice(10) : `${number} ${unit}`;
}

/** @param {{plot: import("../model/samples.js").Plot}} props */
function Graph({ plot }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const drawn = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const made = new (/** @type {any} */ (uPlot))({
      width: element.clientWidth || 400, height: 150, legend: { show: false }, cursor: { y: false },
      series: [{}, ...plot.names.map((name, index) => ({ label: name, stroke: colour(COLOURS[index % 4]), width: 1.5, fill: plot.names.length === 1 ? `${colour(COLOURS[0])}22` : undefined }))],
      axes: [{ ...axis, values: (/** @type {any} */ u, /** @type {number[]} */ all) => timeLabels(all, u.scales.x.max - u.scales.x.min) }, { ...axis, size: 74, values: (/** @type {any} */ _u, /** @type {number[]} */ all) => all.map((value) => show(plot.unit, value)) }],
      scales: { y: { range: (/** @type {any} */ _u, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.1 || (plot.unit.startsWith("bytes") ? 4096 : 1)] } },
    }, plot.data, element);
    drawn.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 150 }));
    watcher.observe(element);
    return () => (watcher.disconnect(), made.destroy());
  }, [plot.title, plot.names.join()]);
  useEffect(() => void drawn.current?.setData(plot.data), [plot.data]);
  return html`<figure class="graph"><figcaption>${plot.title}${plot.names.map((name, index) => html` <span key=${name} class=${`key key-${index % 4}`}><i aria-hidden="true"></i>${plot.names.length > 1 ? name : ""} ${show(plot.unit, plot.latest[index])}</span>`)}</figcaption><div ref=${box}></div></figure>`;
}
