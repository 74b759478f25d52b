// Forms made from the API's description: schemas to fields, values to a request; pure.

/** @typedef {{description?: string, type?: string | string[], enum?: any[], anyOf?: Schema[], default?: any,
 *   items?: Schema | false, prefixItems?: Schema[], properties?: Record<string, Schema>, required?: string[],
 *   title?: string, minimum?: number, exclusiveMinimum?: number, maximum?: number, const?: any}} Schema */
/** @typedef {{name: string, doc: string, kind: string, required: boolean, default: any, choices: any[],
 *   suggest: string, of: Field[], place: "path" | "query" | "body" | "whole", schema: Schema}} Field
 *   `kind` is text, secret, number, size, flag, choice, list, pairs, rows, changes or json; the value of
 *   place "whole" is the body itself */
/** @typedef {{method: Api.Method, path: string, summary: string, opcode: string, dryRun: boolean, fields: Field[],
 *   access: string[], permission: string}} Form */

/** Parameters of every job, which come last. */
const GENERAL = ["priority", "depends", "comment", "debug_level", "reason"];
/** Older or internal spellings that a person never needs. */
const HIDDEN = /_uuids?$|^__version__$|^dry_run$|^live$|^hotplug_if_possible$|^source_handshake$|^x509_/;

/** Kinds of objects whose names are suggested, by the name of the parameter. @type {[RegExp, string][]} */
const SUGGEST = [
  [/^(pnode|snode|remote_node|target_node|src_node|node_name|nodes|node_names|destination|target)$/, "node"],
  [/^(group_name|group|target_groups)$/, "group"],
  [/^(instance_name|instances)$/, "instance"],
  [/^(network|network_name)$/, "network"],
  [/^(os|os_name|os_type)$/, "os"],
  [/^(image|image_name)$/, "image"],
  [/^(custom_)?hvparams$/, "hvparams"],
  [/^(custom_)?beparams$/, "beparams"],
  [/^(custom_)?ndparams$/, "ndparams"],
  [/^(nicparams)$/, "nicparams"],
];

/** @param {string} name */
function suggestion(name) {
  return SUGGEST.find(([pattern]) => pattern.test(name))?.[1] ?? "";
}

/** A schema without the alternative null. @param {Schema} schema @returns {{schema: Schema, optional: boolean}} */
export function unwrap(schema) {
  const parts = schema.anyOf ?? [];
  const rest = parts.filter((part) => part.type !== "null");
  if (parts.length && rest.length < parts.length) {
    const inner = rest.length === 1 ? rest[0] : { ...schema, anyOf: rest };
    return { schema: { ...inner, description: schema.description ?? inner.description }, optional: true };
  }
  return { schema, optional: false };
}

/** @param {Schema} schema @returns {string} */
function kindOf(schema) {
  if (schema.title === "Secret" || schema.title === "Private") return "secret";
  if (schema.title === "Mebibytes") return "size";
  if (schema.enum) return "choice";
  const types = (schema.anyOf ?? []).map((part) => part.type);
  if (types.includes("string") && types.every((type) => ["string", "integer"].includes(String(type)))) return "text";
  const inner = { string: "text", integer: "number", number: "number", boolean: "flag" }[String(schema.type)];
  if (inner) return inner;
  if (schema.type === "object") return schema.properties ? "row" : "pairs";
  if (schema.type === "array" && schema.items) {
    const items = unwrap(schema.items).schema;
    if (items.prefixItems?.length === 3 && items.prefixItems[0].enum?.includes("modify")) return "changes";
    if (items.properties) return "rows";
    if (items.type === "string" || items.enum) return "list";
  }
  return "json";
}

/**
 * @param {string} name @param {Schema} given @param {boolean} required
 * @param {Field["place"]} place @returns {Field}
 */
export function field(name, given, required, place = "body") {
  const { schema } = unwrap(given);
  const kind = kindOf(schema);
  const items = schema.items ? unwrap(schema.items).schema : undefined;
  const row = kind === "changes" ? items?.prefixItems?.[2] : kind === "rows" ? items : schema;
  const of = ["rows", "changes", "row"].includes(kind) ? fieldsOf(row ?? {}) : [];
  return {
    name,
    doc: given.description ?? "",
    kind,
    required,
    default: given.default ?? null,
    choices: schema.enum ?? (kind === "changes" ? items?.prefixItems?.[0].enum ?? [] : items?.enum ?? []),
    suggest: suggestion(name),
    of,
    place,
    schema,
  };
}

/** @param {Schema} schema @returns {Field[]} */
function fieldsOf(schema) {
  const needed = schema.required ?? [];
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !HIDDEN.test(name))
    .map(([name, inner]) => field(name, inner, needed.includes(name)));
}

/**
 * The form of one request.
 * @param {any} api the OpenAPI document @param {Api.Method} method @param {string} path
 * @returns {Form | null} null when there is no such request
 */
export function describe(api, method, path) {
  const found = api.paths[path]?.[method.toLowerCase()];
  if (!found) return null;
  const parameters = found.parameters ?? [];
  const body = found.requestBody?.content?.["application/json"]?.schema ?? {};
  const inPath = parameters.filter((/** @type {any} */ p) => p.in === "path");
  const inQuery = parameters.filter((/** @type {any} */ p) => p.in === "query" && p.name !== "dry-run" && !(p.name in (body.properties ?? {})));
  const fields = [
    ...inPath.map((/** @type {any} */ p) => field(p.name, { ...p.schema, description: p.description }, true, "path")),
    ...inQuery.map((/** @type {any} */ p) => queryField(p)),
    ...(body.enum ? [field(path.split("/").at(-1) ?? "", body, true, "whole")] : fieldsOf(body)),
  ];
  return {
    method,
    path,
    summary: found.summary,
    opcode: found["x-ganeti-opcode"] ?? "",
    dryRun: parameters.some((/** @type {any} */ p) => p.name === "dry-run"),
    fields,
    access: found["x-ganeti-access"] ?? [],
    permission: found["x-ganeti-permission"] ?? "",
  };
}

/** @param {any} parameter @returns {Field} */
function queryField(parameter) {
  const schema = parameter.schema;
  const made = field(parameter.name, { ...schema, description: parameter.description }, parameter.required, "query");
  const isFlag = schema.enum?.length === 2 && schema.enum[0] === 0;
  return isFlag ? { ...made, kind: "flag", choices: [], default: false } : made;
}

/**
 * Fields in the order of a form: those that matter first, then the others, then the general ones.
 * @param {Form} form @param {string[]} first
 */
export function arrange(form, first) {
  const shown = form.fields.filter((item) => item.place !== "path");
  const main = first.flatMap((name) => shown.filter((item) => item.name === name));
  const needed = shown.filter((item) => item.required && !main.includes(item));
  const rest = shown.filter((item) => !main.includes(item) && !needed.includes(item));
  return {
    main: [...main, ...needed],
    more: rest.filter((item) => !GENERAL.includes(item.name)),
    general: rest.filter((item) => GENERAL.includes(item.name)),
  };
}

/** What a person typed for a field, as a value of JSON; undefined for nothing. @param {Field} item @param {any} typed */
export function valueOf(item, typed) {
  if (typed === undefined || typed === null || typed === "") return undefined;
  if (item.kind === "number") return Number.isFinite(Number(typed)) ? Number(typed) : typed;
  if (item.kind === "size") return /^\d+$/.test(String(typed)) ? Number(typed) : typed;
  if (item.kind === "choice" && item.choices.every((choice) => typeof choice === "number")) return Number(typed);
  if (item.kind === "list") return typeof typed === "string" ? typed.split(/[,\s]+/).filter(Boolean) : typed;
  if (item.kind === "json") return typeof typed === "string" ? parseJson(typed) : typed;
  if (item.kind === "pairs") return pairs(typed);
  if (item.kind === "rows") return typed.map((/** @type {any} */ row) => rowOf(item, row));
  if (item.kind === "changes") {
    return typed.map((/** @type {any} */ row) => [row.change, place(row.place), rowOf(item, row.values ?? {})]);
  }
  return typed;
}

/** @param {any} text index or name of a device; the end when nothing is typed */
function place(text) {
  const typed = String(text ?? "");
  return typed === "" ? -1 : /^-?\d+$/.test(typed) ? Number(typed) : typed;
}

/** @param {string} text */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {Record<string, any>} typed */
function pairs(typed) {
  const kept = Object.entries(typed).filter(([key, value]) => key && value !== "" && value !== undefined);
  return kept.length ? Object.fromEntries(kept.map(([key, value]) => [key, scalar(value)])) : undefined;
}

/** A word of a parameter as its value. @param {any} value */
export function scalar(value) {
  if (typeof value !== "string") return value;
  if (/^-?\d{1,15}$/.test(value)) return Number(value);
  return { true: true, false: false, yes: true, no: false }[value] ?? value;
}

/** @param {Field} item @param {Record<string, any>} row */
function rowOf(item, row) {
  /** @type {Record<string, any>} */
  const made = {};
  for (const inner of item.of) {
    const value = valueOf(inner, row[inner.name]);
    if (value !== undefined) made[inner.name] = value;
  }
  return made;
}

/** @param {any} a @param {any} b */
function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** @typedef {{method: Api.Method, path: any, query: [string, string][], body: any}} Request
 *   the path is one of the API's, as its form is; without a body it is an empty object */

/**
 * The request of what was typed. What equals the default is left out.
 * @param {Form} form @param {Record<string, any>} typed
 * @param {{fixed?: Record<string, any>, dryRun?: boolean}} [more] `fixed` goes into the body as it is
 * @returns {Request}
 */
export function request(form, typed, more = {}) {
  /** @type {[string, string][]} */
  const query = [];
  /** @type {Record<string, any>} */
  let body = { ...more.fixed };
  let path = form.path;
  for (const item of form.fields) {
    const value = valueOf(item, typed[item.name]);
    if (item.place === "path") {
      path = path.replace(`{${item.name}}`, encodeURIComponent(String(value ?? "")));
    } else if (value === undefined || (same(value, item.default) && !item.required)) {
      continue;
    } else if (item.place === "query") {
      for (const one of Array.isArray(value) ? value : [value]) {
        query.push([item.name, typeof one === "boolean" ? String(Number(one)) : String(one)]);
      }
    } else if (item.place === "whole") {
      body = value;
    } else {
      body[item.name] = value;
    }
  }
  if (more.dryRun) query.push(["dry-run", "1"]);
  return { method: form.method, path, query, body };
}

/** Names of required fields without a value. @param {Form} form @param {Record<string, any>} typed @param {Record<string, any>} fixed */
export function missing(form, typed, fixed = {}) {
  return form.fields
    .filter((item) => item.required && !(item.name in fixed))
    .filter((item) => valueOf(item, typed[item.name]) === undefined)
    .map((item) => item.name);
}

/** Whether the rights of a session allow a request. @param {any} access @param {Form} form */
export function permits(access, form) {
  const held = access?.permissions;
  if (!Array.isArray(held) || !form.access.length || form.access.includes("known")) return true;
  const families = [form.permission, form.permission.replace(/[.].*/, ".*")];
  if (families.some((name) => held.includes(`-${name}`))) return false;
  return [...families, ...form.access].some((name) => held.includes(name)) || (form.access.includes("read") && held.includes("write"));
}
