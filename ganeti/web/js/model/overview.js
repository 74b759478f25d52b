// What the overview says of a cluster; pure.
import { ago, moment, short } from "./format.js";
import { t } from "../text.js";

/** @typedef {Record<string, any>} Row */

/** Guests that are not as the configuration wants them. @param {Row[]} instances */
export function guestsNotAsWanted(instances) {
  return instances.filter((row) => /^ERROR/.test(row.status ?? ""));
}

/**
 * Instances with a schedule whose last backup is older than 1.5 intervals, as for the alert rule, or is missing.
 * @param {Row[]} instances @param {number} now seconds
 */
export function lateBackups(instances, now) {
  return instances.filter((row) => row["backup.every"] && now - (row["backup.time"] ?? 0) > 1.5 * 3600 * row["backup.every"]);
}

/** @param {number} total @param {number} left */
const share = (total, left) => ({ total, used: total - left, part: total ? (total - left) / total : 0 });

/** @param {Row[]} nodes @param {Row[]} instances @param {any} health */
export function capacity(nodes, instances, health) {
  const online = nodes.filter((node) => node.state === "online");
  const sum = (/** @type {string} */ field) => online.reduce((total, node) => total + (node[field] ?? 0), 0);
  const running = instances.filter((row) => row.status === "running");
  const vcpus = running.reduce((total, row) => total + (row["be/vcpus"] ?? 0), 0);
  const groups = health?.capacity?.groups ?? null;
  return {
    nodes: nodes.length,
    online: online.length,
    instances: instances.length,
    running: running.length,
    memory: share(sum("mtotal"), sum("mfree")),
    disk: share(sum("dtotal"), sum("dfree")),
    cpu: { total: sum("ctotal"), used: vcpus, part: sum("ctotal") ? vcpus / sum("ctotal") : 0 },
    nPlusOne: groups === null ? null : groups.every((/** @type {Row} */ group) => !group.stuck.length),
  };
}

/**
 * Findings of the last verify and other facts, of the answer of `/2/health`; null counts as nothing known.
 * @param {any} health @param {number} now seconds
 * @returns {{rows: {level: string, code: string, text: string, object: string, since: number | null}[], facts: [string, string][]}}
 */
export function findings(health, now) {
  if (!health) return { rows: [], facts: [] };
  const rows = health.findings.map((/** @type {any} */ item) => ({
    level: item.severity === "error" ? "error" : "warning",
    code: item.code,
    text: item.text,
    object: item.object ?? "",
    since: item.since ?? null,
  }));
  for (const mirror of health.degraded_mirrors) {
    rows.push({ level: "warning", code: t.overview.degraded, text: `disk ${mirror.disk} on ${mirror.node}: ${mirror.state}`, object: mirror.instance, since: null });
  }
  /** @type {[string, string | null][]} */
  const facts = [
    [t.overview.lastVerify, health.verified ? ago(health.verified, now) : t.overview.noVerify],
    [t.overview.lastWatcher, health.watcher_run ? ago(health.watcher_run, now) : t.overview.noWatcher],
    [t.overview.watcherPaused, health.watcher_paused_until > now ? moment(health.watcher_paused_until) : null],
    [t.overview.queue, health.queue_drained ? t.overview.queueDrained : null],
    [t.overview.certificates, firstEnd(health.certificates)],
    [t.overview.offline, health.offline_nodes.join(", ") || null],
  ];
  return { rows, facts: /** @type {[string, string][]} */ (facts.filter(([, value]) => value !== null)) };
}

/** The certificate that ends first. @param {{node: string, certificate: string, ends: number}[]} certificates */
function firstEnd(certificates) {
  const [first] = [...certificates].sort((a, b) => a.ends - b.ends);
  return first ? `${first.certificate} (${short(first.node)}) ${t.overview.untilCert} ${moment(first.ends)}` : null;
}
