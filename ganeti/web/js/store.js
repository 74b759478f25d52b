// What the page knows of the cluster: lists by kind, kept as they are now by the event stream.
import { ApiError, failureOf, get, maybe, query } from "./api.js";
import { readEvents } from "./events.js";
import { batch, computed, signal } from "./html.js";
import { KINDS } from "./kinds.js";
import { seconds } from "./model/format.js";
import { silentNodes } from "./model/mirrors.js";
import { merged, toObjects } from "./model/rows.js";
import { pause, stale } from "./model/stream.js";

/** @typedef {Record<string, any>} Row */

/** @type {Record<string, {value: Row[] | null}>} */
export const lists = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, signal(/** @type {Row[] | null} */ (null))]));
/** Problems of loading by kind. @type {{value: Record<string, string>}} */
export const problems = signal({});
/** Whether the event stream is there: connecting, live, away (the master does not answer) or lost. */
export const link = signal("connecting");
/** Since when it is as it is, in seconds since 1970. */
export const linkSince = signal(Date.now() / 1000);
/** Counts how often events were lost: what is not a list here has to be loaded again then. */
export const healed = signal(0);
export const cluster = signal(/** @type {any} */ (null));
export const api = signal(/** @type {any} */ (null));
export const health = signal(/** @type {any} */ (null));
export const commands = signal(/** @type {any} */ ({}));
/** Log entries of jobs that ran while the page was open, by id. @type {{value: Record<number, any[]>}} */
export const logs = signal({});
/** The latest events, newest first. @type {{value: any[]}} */
export const events = signal([]);
/** Seconds since 1970, every second. */
export const now = signal(Date.now() / 1000);
/** Milliseconds from an event to the screen, for measuring. @type {number[]} */
export const delays = [];

const RUNNING = ["running", "waiting", "queued", "pending", "canceling"];
/** @type {{value: Row[]}} */
export const activeJobs = computed(() => (lists.job.value ?? []).filter((job) => RUNNING.includes(job.status)));

/** @type {Map<string, Promise<void>>} */
const loading = new Map();
let hear = () => {};
/** Until the event stream began, or failed for the first time. @type {Promise<void>} */
const hearing = new Promise((done) => (hear = done));

/** Loads a list unless it is there. @param {string} kind */
export function need(kind) {
  if (lists[kind].value !== null || loading.has(kind)) return loading.get(kind) ?? Promise.resolve();
  return load(kind);
}

/** Loads a whole list, not before events are heard: what changes meanwhile is then known. @param {string} kind */
export function load(kind) {
  const made = hearing.then(() => fetchRows(kind, null)).then(
    (rows) => {
      lists[kind].value = rows;
      problems.value = { ...problems.value, [kind]: "" };
    },
    (error) => {
      if (lists[kind].value === null) problems.value = { ...problems.value, [kind]: error.message };
      // What is shown may be old; a connection that is back may still fail for a moment.
      else if (!(error instanceof ApiError)) window.setTimeout(() => load(kind), 2000);
    },
  );
  loading.set(kind, made);
  return made.finally(() => loading.get(kind) === made && loading.delete(kind));
}

/** @param {string} kind @param {any[] | null} filter */
async function fetchRows(kind, filter) {
  const found = KINDS[kind];
  const rows = found.list ? await get(found.list) : toObjects(await query(found.resource, found.fields, filter));
  return found.refine ? found.refine(rows) : rows;
}

/** Rows of some objects, of which some may be gone. @param {string} kind @param {string} key @param {string[]} names */
async function fetchNamed(kind, key, names) {
  const some = ["|", ...names.map((name) => ["==", key, name])];
  try {
    return await fetchRows(kind, some);
  } catch (error) {
    // The API takes this filter for a list of names, of which each must be known; not so beside another.
    if (error instanceof ApiError && error.status === 404) return fetchRows(kind, ["&", ["!=", key, ""], some]);
    throw error;
  }
}

// what events make stale

/** @type {Map<string, Set<string>>} */
const wanted = new Map();
let timer = 0;

/** @param {string} kind @param {string} name */
function refresh(kind, name) {
  if (kind === "cluster") {
    loadCluster().catch(() => window.setTimeout(() => refresh(kind, name), 2000));
    return;
  }
  const first = loading.get(kind);
  if (first) {
    // The list that comes may be older than the event.
    void first.then(() => refresh(kind, name));
    return;
  }
  if (!lists[kind] || lists[kind].value === null) return;
  const names = wanted.get(kind) ?? new Set();
  wanted.set(kind, names.add(name));
  timer ||= window.setTimeout(flush, 20);
}

function flush() {
  timer = 0;
  const todo = [...wanted];
  wanted.clear();
  for (const [kind, names] of todo) {
    const key = KINDS[kind].query ?? KINDS[kind].key;
    if (names.has("*") || names.size > 50 || KINDS[kind].list) {
      void load(kind);
      continue;
    }
    const asked = [...names];
    fetchNamed(kind, key, asked).then(
      (rows) => (lists[kind].value = merged(lists[kind].value ?? [], KINDS[kind].key, asked, rows)),
      () => window.setTimeout(() => asked.forEach((name) => refresh(kind, name)), 2000),
    );
  }
}

/** Loads everything that is shown again, after events were lost. */
function loadAll() {
  healed.value += 1;
  refresh("cluster", "*");
  for (const kind of Object.keys(lists)) {
    if (lists[kind].value !== null || problems.value[kind]) void load(kind);
  }
}

async function loadCluster() {
  const [info] = await Promise.all([get("/2/info"), loadHealth()]);
  cluster.value = info;
}

/** Loads what no event tells of. A node that goes or comes changes lists, too. */
async function loadHealth() {
  const before = health.value;
  const found = await maybe("/2/health").catch(() => before);
  health.value = found;
  if (before && found && `${silentNodes(before)}` !== `${silentNodes(found)}`) ["node", "instance"].forEach((kind) => refresh(kind, "*"));
}

/** Loads what every page needs, and follows events; tries until the server answers. */
export async function begin() {
  void follow();
  for (let tries = 0; ; tries += 1) {
    try {
      const [names, document] = await Promise.all([get("/ui/commands.json"), get("/openapi.json"), loadCluster(), load("job")]);
      commands.value = names;
      api.value = document;
      break;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return; // a new log-in begins again
      await new Promise((done) => setTimeout(done, pause(tries) * 1000));
    }
  }
}

// events

/** Milliseconds between two looks at the health of the cluster. */
const LOOK = 15_000;
let last = "";
let running = false;

/** @param {string} state */
function setLink(state) {
  if (link.value !== state) linkSince.value = Date.now() / 1000;
  link.value = state;
}

async function follow() {
  if (running) return;
  running = true;
  for (let tries = 0; running; tries += 1) {
    try {
      await readEvents({ last }, (found) => batch(() => found.forEach((frame) => take(frame, () => (tries = 0)))));
    } catch (error) {
      hear();
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        setLink(error.status === 403 ? "none" : "lost");
        running = false;
        return;
      }
    }
    setLink("lost");
    await new Promise((done) => setTimeout(done, pause(tries) * 1000));
  }
}

/** Begins again to follow events, after a new log-in. */
export function resume() {
  if (!api.value) {
    void begin();
    return;
  }
  loadAll();
  void follow();
}

/** @param {import("./model/stream.js").Frame} frame @param {() => void} connected */
function take(frame, connected) {
  if (frame.event === "away") {
    connected();
    setLink("away");
    hear();
    return;
  }
  if (frame.id) last = frame.id;
  if (frame.event === "start" || frame.event === "lost") {
    connected();
    // Whatever was asked while the connection or the master was away may have failed.
    if (frame.event === "lost" || link.value === "lost" || link.value === "away") loadAll();
    setLink("live");
    hear();
    return;
  }
  const event = JSON.parse(frame.data);
  events.value = [event, ...events.value].slice(0, 200);
  if (event.kind === "job") noteJob(event);
  for (const [kind, name] of stale(event)) {
    // Jobs name objects of all kinds; what is new comes with an event of its own.
    if (event.kind !== "job" || name === "*" || lists[kind].value?.some((row) => row.name === name)) refresh(kind, name);
  }
  requestAnimationFrame(() => delays.push(Date.now() - event.time * 1000));
}

/** @param {any} event */
function noteJob(event) {
  const first = loading.get("job");
  if (first && event.change !== "message") {
    void first.then(() => noteJob(event));
    return;
  }
  const id = Number(event.object);
  if (event.change === "message") {
    const known = logs.value[id] ?? [];
    if (known.some((entry) => entry.serial === event.data.serial)) return;
    logs.value = { ...logs.value, [id]: [...known, event.data] };
    return;
  }
  const rows = lists.job.value;
  if (rows === null) return;
  if (event.change === "archived") {
    lists.job.value = rows.filter((job) => job.id !== id);
    return;
  }
  const { status, summary } = event.data;
  const known = rows.find((job) => job.id === id);
  /** @type {Row} */
  const changed = { ...(known ?? { id, received_ts: event.time, start_ts: null, end_ts: null, priority: 0, user: "", objects: event.objects.slice(1) }), status, summary };
  if (status === "running" && !changed.start_ts) changed.start_ts = event.time;
  if (["success", "error", "canceled"].includes(status)) changed.end_ts = event.time;
  lists.job.value = known ? rows.map((job) => (job.id === id ? changed : job)) : [...rows, changed];
}

/** Stands for the serial of the reason why a job failed, which is no entry of its log but comes last. */
const FAILURE = Infinity;

/** Entries of a job's log, those that came before the page included, and why it failed. @param {number} id */
export async function loadLog(id) {
  const job = await get(`/2/jobs/${id}`);
  const entries = (job.oplog ?? []).flatMap((/** @type {any[]} */ log, /** @type {number} */ op) =>
    log.map(([serial, time, type, message]) => ({ op, serial, time: time[0] + time[1] / 1e6, type, message })),
  );
  if (job.status === "error") entries.push({ op: -1, serial: FAILURE, time: seconds(job.end_ts), type: "error", message: failureOf(job) });
  const fresh = (logs.value[id] ?? []).filter((entry) => !entries.some((/** @type {any} */ e) => e.serial === entry.serial));
  logs.value = { ...logs.value, [id]: [...entries, ...fresh] };
  return job;
}

window.setInterval(() => link.value === "live" && document.visibilityState === "visible" && void loadHealth(), LOOK);
window.setInterval(() => (now.value = Date.now() / 1000), 1000);
// For tests and for the console of a browser.
Object.assign(window, { ganeti: { delays, link } });
