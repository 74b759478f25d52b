// What the overview says of a cluster; pure.
import { ago, moment } from "./format.js";
import { t } from "../text.js";

/** @typedef {Record<string, any>} Row */

/** Guests that are not as the configuration wants them. @param {Row[]} instances */
export function guestsNotAsWanted(instances) {
  return instances.filter((row) => /^ERROR/.test(row.status ?? ""));
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
    nPlusOne: groups === null ? null : Object.values(groups).every((group) => !group.stuck?.length),
  };
}

/**
 * Findings of the last verify and ages, of the answer of `/2/health`; null counts as nothing known.
 * @param {any} health @param {number} now seconds
 * @returns {{rows: {level: string, code: string, text: string, object: string}[], facts: [string, string][]}}
 */
export function findings(health, now) {
  if (!health) return { rows: [], facts: [] };
  const rows = (health.findings ?? []).map((/** @type {any} */ item) => ({
    level: String(item.severity ?? "warning").toLowerCase() === "error" ? "error" : "warning",
    code: String(item.code ?? ""),
    text: String(item.text ?? ""),
    object: String(item.object ?? ""),
  }));
  /** @type {[string, any][]} */
  const facts = [
    [t.overview.lastVerify, timeOf(lastVerify(health.verified), now) ?? t.overview.noVerify],
    [t.overview.lastWatcher, timeOf(health.watcher_run, now)],
    [t.overview.certificates, firstEnd(health.certificates)],
    [t.overview.degraded, health.degraded_mirrors?.length || health.degraded?.length || null],
  ];
  return { rows, facts: /** @type {[string, string][]} */ (facts.filter(([, value]) => value != null)) };
}

/** @param {any} found seconds since 1970, or an object with a time or an age @param {number} now */
function timeOf(found, now) {
  if (found == null) return null;
  if (typeof found === "number") return ago(found, now);
  const age = found.age ?? found.age_seconds;
  if (age != null) return ago(now - age, now);
  return found.time != null || found.ended != null ? ago(found.time ?? found.ended, now) : null;
}

/** The oldest time at which a group, or the configuration, was verified. @param {any} verified */
function lastVerify(verified) {
  const times = (typeof verified === "object" ? Object.values(verified ?? {}) : [verified]).filter((time) => typeof time === "number");
  return times.length ? Math.min(...times) : null;
}

/** The certificate that ends first. @param {any} certificates */
function firstEnd(certificates) {
  const all = Array.isArray(certificates) ? certificates : Object.entries(certificates ?? {}).map(([name, value]) => ({ name, expires: value }));
  const sorted = all.map((item) => ({ name: `${item.node} ${item.certificate}`, end: Number(item.ends) })).filter((item) => item.end > 0).sort((a, b) => a.end - b.end);
  return sorted.length ? `${sorted[0].name} ${t.overview.untilCert} ${moment(sorted[0].end)}` : null;
}
