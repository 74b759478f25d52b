// Rows of lists: answers of queries to objects, sorting, the visible part; pure.

/**
 * The rows of an answer of `/2/query/...` as objects; a value that is not known is null.
 * @param {{fields: {name: string}[], data: [number, any][][]}} answer
 * @returns {Record<string, any>[]}
 */
export function toObjects(answer) {
  const names = answer.fields.map((item) => item.name);
  // Copies of one object are several times as fast to make as objects that get one member after the other.
  /** @type {Record<string, any>} */
  const unknown = Object.fromEntries(names.map((name) => [name, null]));
  return answer.data.map((row) => {
    const made = { ...unknown };
    for (let index = 0; index < names.length; index += 1) {
      const [status, value] = row[index];
      if (status === 0) made[names[index]] = value;
    }
    return made;
  });
}

const ORDER = new Intl.Collator("en", { numeric: true });

/** @param {any} a @param {any} b */
export function compare(a, b) {
  if (a === b) return 0;
  if (a == null) return 1;
  if (b == null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (Array.isArray(a) && Array.isArray(b)) return compare(a[0], b[0]);
  return ORDER.compare(String(a), String(b));
}

/**
 * @param {Record<string, any>[]} rows @param {(row: Record<string, any>) => any} value @param {boolean} down
 */
export function sorted(rows, value, down) {
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort((a, b) => compare(a.key, b.key));
  if (down) keyed.reverse();
  return keyed.map((item) => item.row);
}

/**
 * Which rows are seen, with some more at both ends.
 * @param {number} count @param {number} top pixels scrolled @param {number} height pixels seen @param {number} row pixels of one
 */
export function visible(count, top, height, row) {
  const margin = 12;
  const first = Math.max(0, Math.floor(top / row) - margin);
  const last = Math.min(count, Math.ceil((top + height) / row) + margin);
  return { first: Math.min(first, count), last };
}

/**
 * Changed rows put into a list that is known; those that are gone are taken out.
 * @param {Record<string, any>[]} known @param {string} key @param {string[]} asked @param {Record<string, any>[]} found
 */
export function merged(known, key, asked, found) {
  const fresh = new Map(found.map((row) => [row[key], row]));
  const gone = new Set(asked.filter((name) => !fresh.has(name)));
  const kept = known.filter((row) => !gone.has(row[key])).map((row) => fresh.get(row[key]) ?? row);
  const names = new Set(known.map((row) => row[key]));
  return [...kept, ...found.filter((row) => !names.has(row[key]))];
}

/** Names of rows between two, for a selection with the shift key. @param {string[]} names @param {string} from @param {string} to */
export function between(names, from, to) {
  const a = names.indexOf(from);
  const b = names.indexOf(to);
  return a < 0 || b < 0 ? [to] : names.slice(Math.min(a, b), Math.max(a, b) + 1);
}
