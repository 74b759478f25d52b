// The event stream as text: frames of Server-Sent Events, and what they make stale; pure.

/** @typedef {{id: string, event: string, data: string}} Frame */

/** Splits a stream into frames; keeps what is not complete. */
export class Frames {
  constructor() {
    this.rest = "";
  }

  /** @param {string} text @returns {Frame[]} */
  add(text) {
    const parts = (this.rest + text).split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.map(frame).filter((found) => found.event !== "" || found.data !== "");
  }
}

/** @param {string} text @returns {Frame} */
function frame(text) {
  const made = { id: "", event: "", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (name === "id" || name === "event" || name === "data") made[name] += value;
  }
  return made;
}

/** Seconds until the next try to connect: short first, at most ten. @param {number} tries */
export function pause(tries) {
  return Math.min(10, 0.25 * 2 ** Math.min(tries, 6));
}

const ENDED = new Set(["success", "error", "canceled"]);

/**
 * What an event makes stale: names by kind; "*" stands for all of a kind.
 * @param {any} event
 * @returns {[string, string][]}
 */
export function stale(event) {
  if (event.kind === "job") {
    if (event.change !== "status" || !ENDED.has(event.data?.status)) return [];
    // What a job did to guests shows only when they are asked.
    const summary = (event.data.summary ?? []).join(" ");
    /** @type {[string, string][]} */
    const named = event.objects.slice(1).map((/** @type {string} */ name) => ["instance", name]);
    if (/INSTANCE|NODE|DISK|BACKUP/.test(summary)) named.push(["node", "*"]);
    if (/BACKUP/.test(summary)) named.push(["export", "*"], ["backup", "*"]);
    if (/NOTIFICATION/.test(summary)) named.push(["notification", "*"]);
    return named;
  }
  if (event.kind === "cluster") return [["cluster", "*"]];
  return [[event.kind, event.object]];
}
