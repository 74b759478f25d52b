// Whether the copies of a disk are in sync; pure.
import { short } from "./format.js";

/** @typedef {Record<string, any>} Row */

/**
 * The state of a mirrored disk; null for other disks, and while no node can tell.
 * @param {Row} disk @param {any} health the answer of `/2/health`
 * @returns {{level: "ok" | "warning", text: string} | null} without a text when all is well
 */
export function mirrorOf(disk, health) {
  if (!health || disk.template !== "drbd") return null;
  const found = health.degraded_mirrors.filter((/** @type {Row} */ item) => item.instance === disk.instance && item.disk === String(disk.index));
  if (found.length) return { level: "warning", text: found.map(stateOf).join("; ") };
  const silent = silentNodes(health);
  return (disk.nodes ?? []).every((/** @type {string} */ node) => silent.includes(node)) ? null : { level: "ok", text: "" };
}

/** Nodes that do not answer, or are not asked. @param {any} health @returns {string[]} */
export function silentNodes(health) {
  return [...health.offline_nodes, ...health.unreachable_nodes.map((/** @type {Row} */ item) => item.node)].sort();
}

/** @param {Row} mirror */
function stateOf(mirror) {
  const done = mirror.percent == null ? "" : ` (${mirror.percent.toFixed(1)} %)`;
  return `${short(mirror.node)}: ${mirror.state}${done}`;
}
