// The job log at the bottom: what runs and waits, messages as they come, why a job waits.
import { call, get } from "../api.js";
import { effect, html, signal, useEffect, useRef } from "../html.js";
import { picture } from "../model/chain.js";
import { clock, plain } from "../model/format.js";
import { url } from "../router.js";
import { activeJobs, healed, lists, loadLog, logs } from "../store.js";
import { t } from "../text.js";
import { Elapsed, Status } from "./parts.js";

/** The job that is looked at in the dock. */
export const watched = signal(0);
const isOpen = signal(localStorage.getItem("dock") !== "closed");
/** Explanations of waiting jobs by id. @type {{value: Record<number, any>, peek: () => Record<number, any>}} */
const reasons = signal({});

const WAITING = ["waiting", "queued", "pending"];
let asked = 0;
effect(() => {
  const jobs = activeJobs.value;
  clearTimeout(asked);
  const waiting = jobs.filter((job) => WAITING.includes(job.status)).slice(0, 20);
  if (!waiting.length) {
    if (Object.keys(reasons.peek()).length) reasons.value = {};
    return;
  }
  asked = window.setTimeout(async () => {
    const found = await Promise.all(waiting.map((job) => get(`/2/jobs/${job.id}/why`).catch(() => null)));
    reasons.value = Object.fromEntries(found.filter((item) => item?.waits_for).map((item) => [item.id, item]));
  }, 150);
});
effect(() => {
  if (watched.value) {
    isOpen.value = true;
    void loadLog(watched.value).catch(() => undefined);
  }
});

/** @param {boolean} on */
function setOpen(on) {
  isOpen.value = on;
  localStorage.setItem("dock", on ? "open" : "closed");
}

export function Dock() {
  const active = activeJobs.value;
  const recent = [...(lists.job.value ?? [])].filter((job) => !active.includes(job)).sort((a, b) => b.id - a.id).slice(0, 25);
  const jobs = [...active].sort((a, b) => b.id - a.id).concat(recent);
  const job = (lists.job.value ?? []).find((item) => item.id === watched.value) ?? jobs[0];
  return html`<section class=${isOpen.value ? "dock open" : "dock"} aria-label=${t.jobs.dock}>
    <header><button class="quiet" aria-expanded=${isOpen.value} onClick=${() => setOpen(!isOpen.value)} title=${isOpen.value ? t.jobs.hide : t.jobs.open}>
      <i aria-hidden="true">${isOpen.value ? "▾" : "▴"}</i> ${t.jobs.dock}</button>
      <span class=${active.length ? "busy" : ""} role="status">${t.jobs.active(active.length)}</span>
      ${active[0] && html`<span class="ticker">${[active[0].summary].flat().join(", ")} ${lastMessage(active[0].id)}</span>`}</header>
    ${isOpen.value && html`<div class="dock-body">
      <ul class="dock-jobs" aria-label=${t.jobs.dock}>${jobs.map((item) => html`<li key=${item.id}><button class=${item.id === job?.id ? "dock-job chosen" : "dock-job"} aria-pressed=${item.id === job?.id} onClick=${() => (watched.value = item.id)}>
        <span class="id">${item.id}</span><${Status} value=${item.status} /><span class="what">${[item.summary].flat().join(", ")}
        ${reasons.value[item.id] && html`<small class="why">${reasons.value[item.id].waits_for.text}</small>`}</span><span class="time"><${Elapsed} job=${item} /></span></button></li>`)}</ul>
      ${job ? html`<${JobLog} job=${job} />` : html`<p class="empty">${t.overview.jobsNone}</p>`}</div>`}
  </section>`;
}

/** @param {number} id */
function lastMessage(id) {
  const entry = (logs.value[id] ?? []).at(-1);
  return entry ? `· ${plain(entry.message)}` : "";
}

/** @param {{job: Record<string, any>}} props */
export function JobLog({ job }) {
  const end = useRef(/** @type {HTMLElement | null} */ (null));
  const entries = logs.value[job.id];
  useEffect(() => {
    void loadLog(job.id).catch(() => undefined);
  }, [job.id, job.status, healed.value]);
  useEffect(() => {
    const box = end.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, [entries?.length, job.id]);
  return html`<div class="job-log">
    <div class="job-head"><a href=${url("jobs", String(job.id))}>${t.kinds.job} ${job.id}</a> <${Status} value=${job.status} /> <span class="what">${[job.summary].flat().join(", ")}</span><${JobButtons} job=${job} /></div>
    ${reasons.value[job.id] && html`<${Chain} why=${reasons.value[job.id]} />`}
    <div class="messages" ref=${end} tabindex="0" role="log" aria-label=${t.jobs.log}>${(entries ?? []).map((entry) => html`<p key=${entry.serial}><time>${clock(entry.time)}</time> ${plain(entry.message)}</p>`)}
      ${!entries?.length && html`<p class="empty">${t.jobs.empty}</p>`}</div></div>`;
}

/** Cancel and priority. @param {{job: Record<string, any>}} props */
export function JobButtons({ job }) {
  const problem = useRef(signal("")).current;
  const act = (/** @type {Promise<any>} */ made) => made.then(
    (answer) => (problem.value = answer[0] ? "" : String(answer[1])),
    (error) => (problem.value = error.message),
  );
  if (!["queued", "waiting", "running", "pending", "canceling"].includes(job.status)) return null;
  return html`<span class="job-buttons">
    <label>${t.jobs.priority} <select value=${String(job.priority ?? 0)} onChange=${(/** @type {any} */ e) => act(call("PUT", `/2/jobs/${job.id}/priority`, { body: { priority: Number(e.target.value) } }))}>
      ${[[-10, t.jobs.high], [0, t.jobs.normal], [10, t.jobs.low]].map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}</select></label>
    <button onClick=${() => act(call("DELETE", `/2/jobs/${job.id}`))} title=${t.consequences.cancelJob(job.id)}>${t.jobs.cancel}</button>
    ${problem.value && html`<span class="problem" role="alert">${problem.value}</span>`}</span>`;
}

const WIDE = 250;
const HIGH = 46;

/** Why a job waits, as boxes that point to what they wait for. @param {{why: any}} props */
export function Chain({ why }) {
  const found = picture(why);
  const x = (/** @type {number} */ level) => 4 + level * (WIDE + 50);
  const y = (/** @type {number} */ row) => 4 + row * (HIGH + 10);
  const cut = (/** @type {string} */ text, /** @type {number} */ most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  return html`<figure class="chain"><figcaption>${found.text}${found.release && html` <b>${t.jobs.released}</b>${found.release}`}</figcaption>
    <svg width=${x(found.levels)} height=${y(found.rows)} role="group" aria-label=${found.text}>
      ${found.lines.map(([from, to, note]) => {
        const a = found.boxes[from];
        const b = found.boxes[to];
        return html`<g key=${`${from}-${to}`}><title>${note}</title><path class="line" d=${`M${x(a.level) + WIDE} ${y(a.row) + HIGH / 2} L${x(b.level) - 3} ${y(b.row) + HIGH / 2}`} /><path class="tip" d=${`M${x(b.level) - 8} ${y(b.row) + HIGH / 2 - 4} l6 4 l-6 4 z`} /></g>`;
      })}
      ${found.boxes.map((box) => html`<a key=${box.id} class=${`box ${box.status}`} href=${url("jobs", String(box.id))}>
        <rect x=${x(box.level)} y=${y(box.row)} width=${WIDE} height=${HIGH} rx="4" />
        <text x=${x(box.level) + 9} y=${y(box.row) + 19}>${cut(`${box.id} ${box.title}`, 32)}</text>
        <text class="small" x=${x(box.level) + 9} y=${y(box.row) + 36}>${cut(`${box.status} ${box.note}`, 38)}</text></a>`)}
    </svg></figure>`;
}
