// The same request as a command and as a call of the API; pure.

/** @typedef {{program: string, command: string, argument: string, flags: Record<string, [string, string]>}} Command */

/** What the role of a node means for the command that changes nodes. @type {Record<string, Record<string, boolean>>} */
const ROLES = {
  regular: { master_candidate: false, drained: false, offline: false },
  "master-candidate": { master_candidate: true },
  drained: { drained: true },
  offline: { offline: true },
};

/** A word as a shell reads it. @param {any} word */
export function quote(word) {
  const text = String(word);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** @param {Record<string, any>} values */
function keyed(values) {
  return Object.entries(values)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(",");
}

/** @param {string} flag @param {string} kind @param {any} value @returns {string[]} */
function words(flag, kind, value) {
  if (kind === "switch") return value ? [flag] : [];
  if (kind === "switch_off") return value ? [] : [flag];
  if (kind === "bool") return [flag, value ? "yes" : "no"];
  if (Array.isArray(value)) {
    if (value.every((item) => Array.isArray(item))) {
      return value.flatMap(([change, place, values]) => [flag, change === "modify" ? `${place}:${keyed(values)}` : `${place}:${[change, keyed(values)].filter(Boolean).join(",")}`]);
    }
    if (value.every((item) => item && typeof item === "object")) {
      return value.flatMap((item, index) => [flag, keyed(item) ? `${index}:${keyed(item)}` : `${index}`]);
    }
    return [flag, value.join(",")];
  }
  if (value && typeof value === "object") return [flag, keyed(value)];
  return [flag, String(value)];
}

/** @param {Record<string, Command>} table @param {string} opcode @param {import("./form.js").Request} request */
function tagsOf(table, opcode, request) {
  const found = /^\/2\/(?:(\w+)s\/([^/]+)\/)?tags$/.exec(request.path);
  if (!found || !opcode.startsWith("OP_TAGS")) return "";
  const program = `gnt-${found[1] ?? "cluster"}`;
  const verb = opcode === "OP_TAGS_SET" ? "add-tags" : "remove-tags";
  const tags = request.query.filter(([name]) => name === "tag").map(([, tag]) => quote(tag));
  return [program, verb, ...(found[2] ? [quote(decodeURIComponent(found[2]))] : []), ...tags].join(" ");
}

const RESTORE = { program: "gnt-backup", command: "restore" };

/**
 * The command of an opcode. Creation has several, by what an instance is made of; a pause of recovery has one to end it.
 * @param {Record<string, Command>} table @param {string} opcode @param {any} body @returns {Command | undefined}
 */
function commandOf(table, opcode, body) {
  const found = table[opcode];
  if (opcode === "OP_BACKUP_RESTORE") {
    return { ...RESTORE, argument: "instance_name", flags: { backup: ["--backup", ""], repository: ["--repository", ""], disk: ["--restore-disk", ""] } };
  }
  if (opcode === "OP_CLUSTER_PAUSE_RECOVERY" && body.duration !== 0) return { ...found, command: "recovery pause", argument: "duration" };
  if (!found || opcode !== "OP_INSTANCE_CREATE") return found;
  if (body.forthcoming) return { ...found, command: "reserve" };
  if (body.mode !== "import") return found;
  /** @type {Command["flags"]} */
  const flags = { ...found.flags, src_node: ["--src-node", ""], backup: ["--backup", ""], repository: ["--repository", ""] };
  if (!body.backup) return { ...found, program: "gnt-backup", command: "import", flags: { ...flags, src_path: ["--src-dir", ""] } };
  return { ...found, ...RESTORE, argument: "src_path", flags: { ...flags, name: ["--as", ""] } };
}

/**
 * The `gnt-*` command that makes the same job; empty when there is none.
 * @param {Record<string, Command>} table by opcode @param {import("./form.js").Form} form
 * @param {import("./form.js").Request} request
 */
export function commandLine(table, form, request) {
  const tags = tagsOf(table, form.opcode, request);
  if (tags) return tags;
  const command = commandOf(table, form.opcode, request.body);
  if (!command) return "";
  /** @type {Record<string, any>} */
  const values = typeof request.body === "string" ? { ...ROLES[request.body] } : { ...request.body };
  for (const [name, value] of request.query) values[name.replaceAll("-", "_")] = value === "1" ? true : value === "0" ? false : value;
  const inPath = Object.fromEntries(pathValues(form.path, request.path));
  const found = command.command === "grow-disk" ? [inPath.instance_name, inPath.disk, values.amount] : [...Object.values(inPath)];
  if (!found.length && values[command.argument] !== undefined) found.push(values[command.argument]);
  if (!found.length && values.name !== undefined) found.push(values.name);
  if (form.opcode === "OP_SNAPSHOT_CREATE" && values.name !== undefined) found.push(values.name);
  const positional = found.flat().map(quote);
  const used = new Set([command.argument, "name", "__version__", "mode", "forthcoming", ...(command.command === "grow-disk" ? ["amount"] : [])]);
  if (form.opcode !== "OP_INSTANCE_CREATE") used.delete("mode");
  if (command.flags.name) used.delete("name");
  const options = Object.entries(values)
    .filter(([name]) => !used.has(name))
    .flatMap(([name, value]) => optionOf(command, name, value));
  return [command.program, command.command, ...options.map(quote), ...positional].join(" ");
}

/** @param {Command} command @param {string} name @param {any} value @returns {string[]} */
function optionOf(command, name, value) {
  /** @type {Record<string, [string, string]>} */
  const general = { dry_run: ["--dry-run", "switch"], reason: ["--reason", ""], priority: ["--priority", ""] };
  const renamed = name.replace(/^custom_/, "");
  const [flag, kind] = command.flags[name] ?? command.flags[renamed] ?? general[name] ?? [];
  if (name === "pnode" && command.flags.pnode === undefined) return ["-n", value];
  return flag ? words(flag, kind ?? "", value) : [];
}

/** @param {string} template @param {string} path @returns {[string, string][]} */
function pathValues(template, path) {
  const given = path.split("/");
  return template.split("/").flatMap((part, index) => (part.startsWith("{") ? [/** @type {[string, string]} */ ([part.slice(1, -1), decodeURIComponent(given[index])])] : []));
}

/** The call with curl. @param {import("./form.js").Request} request @param {string} origin */
export function curl(request, origin) {
  const query = new URLSearchParams(request.query).toString();
  const url = `${origin}${request.path}${query ? `?${query}` : ""}`;
  const body = Object.keys(request.body).length
    ? ["-H", "'Content-Type: application/json'", "-d", quote(JSON.stringify(request.body))]
    : [];
  return ["curl", "-u", "USER", "-X", request.method, ...body, quote(url)].join(" ");
}
