// The filter language of the list commands: text to the JSON form of filters, and that to a test.
// Same grammar as ganeti/filters/grammar.py; a plain word is searched for in all columns.

const FIELD = /(?!(?:and|or|not|in)(?![A-Za-z0-9_/.]))[A-Za-z][A-Za-z0-9_/.]*/y;
const STRING = /"(?:[^"\n\r\\]|""|\\.)*"|'(?:[^'\n\r\\]|''|\\.)*'/y;
const REGEX = /m?([/#^|])((?:\\.|(?!\1)[^\\\n\r])*)\1([A-Za-z]*)/y;
const NUMBER = /[-+]?[0-9]+/y;
const ORDER = /==|!=|<=|>=|<|>|=(?![~*])/y;

export class FilterError extends Error {
  /** @param {string} message @param {number} place character at which it is wrong */
  constructor(message, place) {
    super(message);
    this.place = place;
  }
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  skip() {
    while (/\s/.test(this.text[this.at] ?? "")) this.at += 1;
  }

  /** @param {RegExp} pattern sticky @returns {RegExpExecArray | null} */
  take(pattern) {
    this.skip();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at += found[0].length;
    return found;
  }

  /** @param {string} word */
  word(word) {
    this.skip();
    const end = /[a-z]/.test(word) ? "(?![A-Za-z0-9_/.])" : "";
    return this.take(new RegExp(word.replace(/[()]/g, "\\$&").replace(" ", "\\s+") + end, "y"));
  }

  /** @param {string} expected @returns {never} */
  fail(expected) {
    this.skip();
    throw new FilterError(`expected ${expected}`, Math.min(this.at, this.text.length));
  }
}

/** @param {Reader} reader @returns {any} */
function value(reader) {
  const text = reader.take(STRING);
  if (text) return text[0].slice(1, -1);
  const number = reader.take(NUMBER);
  return number ? Number(number[0]) : undefined;
}

/** @param {Reader} reader @returns {any[]} */
function condition(reader) {
  if (reader.word("not")) return ["!", condition(reader)];
  if (reader.word("(")) {
    const inner = either(reader);
    if (!reader.word(")")) reader.fail("'and', 'or' or ')'");
    return inner;
  }
  const first = value(reader);
  if (first !== undefined) {
    const negated = reader.word("not in");
    if (!negated && !reader.word("in")) reader.fail("'in' or 'not in'");
    const field = reader.take(FIELD) ?? reader.fail("a field name");
    const test = ["=[]", field[0], first];
    return negated ? ["!", test] : test;
  }
  const field = reader.take(FIELD) ?? reader.fail("a condition, 'not' or '('");
  return compare(reader, field[0]);
}

/** @param {Reader} reader @param {string} field @returns {any[]} */
function compare(reader, field) {
  const pattern = reader.take(/[=!]~/y);
  if (pattern) {
    const found = reader.take(REGEX) ?? reader.fail("a regular expression such as /^web/");
    const body = found[2].replaceAll(`\\${found[1]}`, found[1]);
    const flags = [...new Set(found[3])].sort().join("");
    if (/[^is]/.test(flags)) reader.fail("the flags i or s after a regular expression");
    const test = ["=~", field, flags ? `(?${flags})${body}` : body];
    return pattern[0] === "=~" ? test : ["!", test];
  }
  const glob = reader.take(/[=!]\*/y);
  if (glob) {
    const found = reader.take(STRING) ?? reader.fail("a text in quotes");
    const test = ["=*", field, found[0].slice(1, -1)];
    return glob[0] === "=*" ? test : ["!", test];
  }
  const order = reader.take(ORDER);
  if (!order) return ["?", field];
  const wanted = value(reader);
  if (wanted === undefined) reader.fail("a text in quotes or an integer");
  return [order[0] === "=" ? "==" : order[0], field, wanted];
}

/** @param {string} operator @param {string} word @param {(reader: Reader) => any[]} part */
function joined(operator, word, part) {
  return (/** @type {Reader} */ reader) => {
    const parts = [part(reader)];
    while (reader.word(word)) parts.push(part(reader));
    return parts.length === 1 ? parts[0] : [operator, ...parts];
  };
}

const both = joined("&", "and", condition);
const either = joined("|", "or", both);

/**
 * The JSON form of a filter text.
 * @param {string} text
 * @returns {any[]}
 * @throws {FilterError}
 */
export function parse(text) {
  const reader = new Reader(text);
  const found = either(reader);
  reader.skip();
  if (reader.at < text.length) reader.fail("'and', 'or' or the end of the filter");
  return found;
}

/** Whether a text is meant as a filter, not as a word to search for. @param {string} text */
export function isFilter(text) {
  return /[=!<>~()?"']|\b(?:and|or|not|in)\b/.test(text);
}

/** @param {string} glob */
function globToRegex(glob) {
  const body = glob.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${body}$`);
}

/** @param {string} text */
function toRegex(text) {
  const flags = /^\(\?([is]+)\)/.exec(text);
  return new RegExp(flags ? text.slice(flags[0].length) : text, flags ? flags[1] : "");
}

/** @type {Record<string, (a: any, b: any) => boolean>} */
const COMPARE = {
  "==": (a, b) => a === b || (Array.isArray(a) && a.includes(b)),
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "=[]": (a, b) => Array.isArray(a) && a.includes(b),
};

/**
 * A test of rows by field.
 * @param {any[]} wire JSON form
 * @returns {(row: Record<string, any>) => boolean}
 */
export function matcher(wire) {
  const [operator, ...rest] = wire;
  if (operator === "&" || operator === "|") {
    const parts = rest.map(matcher);
    return operator === "&"
      ? (row) => parts.every((part) => part(row))
      : (row) => parts.some((part) => part(row));
  }
  if (operator === "!") {
    const inner = matcher(rest[0]);
    return (row) => !inner(row);
  }
  const [field, wanted] = rest;
  if (operator === "?") return (row) => Boolean(row[field]);
  if (operator === "=~" || operator === "=*") {
    const pattern = operator === "=~" ? toRegex(wanted) : globToRegex(wanted);
    return (row) =>
      [row[field]].flat().some((item) => typeof item === "string" && pattern.test(item));
  }
  const test = COMPARE[operator];
  // A value that is not known decides nothing, as in the queries of the master.
  return (row) => row[field] == null || test(row[field], wanted);
}

/**
 * A test of rows for what was typed: a filter, or words that all must be in some column.
 * @param {string} text
 * @param {string[]} fields in which words are searched for
 * @returns {{test: (row: Record<string, any>) => boolean, error: string}}
 */
export function understand(text, fields) {
  const typed = text.trim();
  if (!typed) return { test: () => true, error: "" };
  if (isFilter(typed)) {
    try {
      return { test: matcher(parse(typed)), error: "" };
    } catch (error) {
      const place = error instanceof FilterError ? ` (character ${error.place + 1})` : "";
      return { test: () => true, error: `${/** @type {Error} */ (error).message}${place}` };
    }
  }
  const words = typed.toLowerCase().split(/\s+/);
  const test = (/** @type {Record<string, any>} */ row) => {
    const all = fields.map((name) => String(row[name] ?? "")).join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  };
  return { test, error: "" };
}
