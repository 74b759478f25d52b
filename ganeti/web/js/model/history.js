// What a change did to objects: their old and new values; pure.
import { moment, plain } from "./format.js";

/** @typedef {{title: string, values: {key: string, before: string | null, after: string | null}[], more: number}} Touch */

/** Values of a new object that say nothing to a person. */
const DULL = ["uuid", "ctime", "mtime", "serial_no", "reservations", "ext_reservations"];
const MOST = 8;

/**
 * @param {any} change one of the answer of `/2/history` @param {Record<string, string>} names of objects by uuid
 * @returns {Touch[]} one for each object; `before` or `after` is null where the object was not there
 */
export function touches(change, names = {}) {
  return (change.objects ?? []).map((/** @type {any} */ object) => {
    const owner = object.owner ? ` of ${object.owner}` : "";
    const all = valuesOf(object).map(({ key, before, after }) => ({
      key,
      before: before == null ? null : text(key, before, names),
      after: object.change === "removed" ? null : text(key, after, names),
    }));
    return { title: `${object.kind} ${object.name}${owner} ${object.change}`, values: all.slice(0, MOST), more: Math.max(0, all.length - MOST) };
  });
}

/** @param {any} object @returns {{key: string, before: any, after: any}[]} */
function valuesOf(object) {
  if (object.keys) return object.keys.filter((/** @type {any} */ item) => !DULL.includes(item.key.split("/").pop())).map((/** @type {any} */ item) => ({ key: item.key, before: item.old, after: item.new }));
  return Object.entries(object.values ?? {})
    .filter(([key, value]) => !DULL.includes(key) && value !== null && plain(value) !== "–")
    .map(([key, value]) => (object.change === "removed" ? { key, before: value, after: null } : { key, before: null, after: value }));
}

/** @param {string} key @param {any} value @param {Record<string, string>} names */
function text(key, value, names) {
  const isTime = typeof value === "number" && value > 1e9 && /(time|created|expires)$/.test(key);
  const found = (isTime ? moment(value) : plain(value)).replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (uuid) => names[uuid] ?? uuid);
  return found.length > 200 ? `${found.slice(0, 200)}…` : found;
}
