// Why a job waits, as the boxes of a small picture; pure.

/** @typedef {{id: number, title: string, status: string, note: string, level: number, row: number}} Box */
/** @typedef {{boxes: Box[], lines: [number, number, string][], levels: number, rows: number, text: string, release: string}} Picture */

/**
 * @param {any} found the answer of `/2/jobs/ID/why`
 * @returns {Picture} boxes by level (0 is the job itself) and the lines between their indexes
 */
export function picture(found) {
  const known = new Map([[found.id, found], ...(found.chain ?? []).map((/** @type {any} */ job) => [job.id, job])]);
  /** @type {Box[]} */
  const boxes = [];
  /** @type {[number, number, string][]} */
  const lines = [];
  /** @type {Map<number, number>} */
  const placed = new Map();
  /** @type {number[]} */
  const rows = [];
  let todo = [found.id];
  for (let level = 0; todo.length && level < 20; level += 1) {
    /** @type {number[]} */
    const next = [];
    for (const id of todo) {
      if (placed.has(id)) continue;
      const job = known.get(id);
      rows[level] = (rows[level] ?? 0) + 1;
      placed.set(id, boxes.length);
      boxes.push({ id, title: job?.summary ?? `job ${id}`, status: job?.status ?? "", note: noteOf(job), level, row: rows[level] - 1 });
      for (const other of job?.waits_for?.jobs ?? []) next.push(other);
    }
    todo = next;
  }
  for (const [id, index] of placed) {
    const waits = known.get(id)?.waits_for;
    for (const other of waits?.jobs ?? []) {
      const target = placed.get(other);
      if (target !== undefined) lines.push([index, target, noteOf(known.get(id))]);
    }
  }
  return {
    boxes,
    lines,
    levels: rows.length,
    rows: Math.max(1, ...rows),
    text: found.text,
    release: found.waits_for?.release ?? "",
  };
}

/** @param {any} job */
function noteOf(job) {
  const waits = job?.waits_for;
  if (!waits) return job?.step ?? "";
  if (waits.kind === "lock") return (waits.locks ?? []).map((/** @type {any} */ item) => `${item.title ?? item.lock} (${item.mode})`).join(", ");
  if (waits.kind === "filter") return `filter rule ${waits.rule ?? ""}`;
  return waits.text ?? waits.kind;
}
