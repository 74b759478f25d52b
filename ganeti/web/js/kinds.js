// The kinds of objects: what is asked of the API, columns of their lists, and what can be done.
import { moment, plain, short, size, tone } from "./model/format.js";
import { stateOf, used } from "./model/map.js";
import { t } from "./text.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{field: string, label: string, value?: (row: Row) => any, show?: (row: Row) => any, kind?: string,
 *   width?: number, right?: boolean, hidden?: boolean}} Column
 *   `kind` says how a cell is drawn: status, link, bar, tags, mono */
/** @typedef {{label: string, danger?: (names: string[]) => string, when?: (row: Row) => boolean, bulk?: boolean, plan?: string}} Label */
/** @typedef {{[R in Api.Request]: Label & {request: R, first?: Api.Name<R>[], fixed?: {[N in Api.Name<R>]?: any},
 *   typed?: (row: Row) => {[N in Api.Name<R>]?: any}}}[Api.Request]} Action what can be done by a request of the API */
/** @typedef {{title: string, one: string, resource: string, list?: Api.Path<"GET">, key: string, subject?: string, query?: string, fields: string[],
 *   columns: Column[], refine?: (rows: Row[]) => Row[], sort?: string, down?: boolean, create?: Action[],
 *   actions: Action[], path: string, icon: string, history?: boolean}} Kind
 *   `list` is where the objects are when they are no resource of queries; `subject` is the field that names what
 *   requests are about, when it is not the key */

/** @param {string} field @param {string} label @param {Partial<Column>} [more] @returns {Column} */
const column = (field, label, more = {}) => ({ field, label, ...more });
/** @param {string} kind @param {string} field @param {string} label @param {Partial<Column>} [more] */
const ref = (kind, field, label, more = {}) => column(field, label, { kind: `ref:${kind}`, ...more });
const TAGS = column("tags", t.fields.tags, { kind: "tags", width: 120 });
const MADE = column("ctime", t.fields.created, { show: (row) => moment(row.ctime), width: 150, hidden: true });

/** How much of something is free, with one unit where both have it. @param {number} free @param {number} total MiB */
function freeOf(free, total) {
  const [all, unit] = [size(total), size(total).split(" ")[1]];
  return t.fields.freeOf(size(free).replace(` ${unit}`, ""), all);
}

/** @param {Row} row */
const isUp = (row) => row.status === "running";
/** @param {Row} row */
const isDown = (row) => !isUp(row);
const c = t.consequences;

/** @type {Action[]} */
const INSTANCE_ACTIONS = [
  { request: "PUT /2/instances/{instance_name}/startup", label: t.actions.start, when: isDown, bulk: true },
  { request: "PUT /2/instances/{instance_name}/shutdown", label: t.actions.stop, when: isUp, bulk: true, first: ["timeout"], danger: c.shutdown },
  { request: "POST /2/instances/{instance_name}/reboot", label: t.actions.reboot, when: isUp, bulk: true, first: ["type"], danger: c.reboot },
  { request: "PUT /2/instances/{instance_name}/migrate", label: t.actions.migrate, bulk: true, first: ["target_node", "mode", "allow_failover"], danger: c.migrate },
  { request: "PUT /2/instances/{instance_name}/failover", label: t.actions.failover, bulk: true, first: ["target_node", "ignore_consistency"], danger: c.failover },
  { request: "PUT /2/instances/{instance_name}/move", label: t.actions.move, first: ["target_node"], danger: c.move },
  { request: "PUT /2/instances/{instance_name}/modify", label: t.actions.modify, first: ["custom_beparams", "custom_hvparams", "disks", "nics", "runtime_mem"] },
  { request: "POST /2/instances/{instance_name}/disk/{disk}/grow", label: t.actions.grow, first: ["amount", "absolute"], danger: c.grow, typed: () => ({ disk: 0 }) },
  { request: "PUT /2/instances/{instance_name}/activate-disks", label: t.actions.activateDisks, first: ["ignore_size"], when: isDown },
  { request: "PUT /2/instances/{instance_name}/deactivate-disks", label: t.actions.deactivateDisks, first: ["force"], when: isDown },
  { request: "POST /2/instances/{instance_name}/recreate-disks", label: t.actions.recreateDisks, first: ["disks", "nodes", "iallocator"], danger: c.recreateDisks, when: isDown },
  { request: "PUT /2/instances/{instance_name}/modify", label: t.actions.convert, first: ["disk_template", "remote_node"], danger: c.convert, when: isDown },
  { request: "POST /2/instances/{instance_name}/replace-disks", label: t.actions.replaceDisks, first: ["mode", "remote_node"] },
  { request: "POST /2/instances/{instance_name}/reinstall", label: t.actions.reinstall, first: ["os"], danger: c.reinstall, when: isDown },
  { request: "PUT /2/instances/{instance_name}/rename", label: t.actions.rename, first: ["new_name"], when: isDown },
  { request: "PUT /2/instances/{instance_name}/export", label: t.actions.backup, first: ["destination", "shutdown"], danger: c.export },
  { request: "PUT /2/instances/{name}/tags", label: t.actions.tag, bulk: true, first: ["tag"] },
  { request: "DELETE /2/instances/{name}/tags", label: t.actions.untag, bulk: true, first: ["tag"] },
  { request: "DELETE /2/instances/{instance_name}", label: t.actions.remove, bulk: true, first: ["shutdown_timeout"], danger: c.removeInstance },
];

/** What is done with snapshots of an instance. @type {Record<"create" | "revert" | "remove", Action>} */
export const SNAPSHOT = {
  create: { request: "POST /2/instances/{instance_name}/snapshots", label: t.actions.createSnapshot, first: ["name", "description"] },
  revert: { request: "PUT /2/instances/{instance_name}/snapshots/{snapshot_name}/revert", label: t.actions.revert, danger: c.revert, when: isDown },
  remove: { request: "DELETE /2/instances/{instance_name}/snapshots/{snapshot_name}", label: t.actions.remove, danger: c.removeSnapshot },
};

/** What is done with backups of an instance. @satisfies {Record<string, Action>} */
export const BACKUP = {
  run: { request: "POST /2/instances/{instance_name}/backups", label: t.actions.backUp, first: ["repository", "full"] },
  schedule: { request: "PUT /2/instances/{instance_name}/backup-schedule", label: t.actions.schedule, first: ["every", "repository", "keep_last", "keep_daily"] },
  verify: { request: "PUT /2/instances/{instance_name}/verify-backup", label: t.actions.verify, first: ["backup"] },
  restore: { request: "PUT /2/instances/{instance_name}/restore-backup", label: t.actions.restore, first: ["backup", "disk"], danger: c.restore, when: isDown },
};

/** @type {Action} */
export const PAUSE_RECOVERY = { request: "PUT /2/recovery/pause", label: t.actions.pauseRecovery, first: ["duration"] };
/** @type {Action} */
export const CONTINUE_RECOVERY = { request: "PUT /2/recovery/pause", label: t.actions.continueRecovery, fixed: { duration: 0 } };
/** @type {Action} */
export const PLAN_RECOVERY = { request: "PUT /2/recovery/plan", label: t.recovery.ifItDied };

/** What is done with the cluster itself. @type {Action[]} */
export const CLUSTER_ACTIONS = [
  { request: "PUT /2/modify", label: t.actions.modify, first: ["enabled_hypervisors", "enabled_disk_templates", "beparams", "hvparams", "ndparams", "ipolicy", "default_iallocator", "max_running_jobs"] },
  PAUSE_RECOVERY,
  { request: "PUT /2/redistribute-config", label: t.actions.redistribute },
  { request: "PUT /2/tags", label: t.actions.tag, first: ["tag"] },
  { request: "DELETE /2/tags", label: t.actions.untag, first: ["tag"] },
];

/** @param {Row} row a backup that was read */
const isReadable = (row) => Boolean(row.id);

/** Which backup, for requests about one. @param {Row} row */
const place = (row) => ({ backup: row.id, repository: row.repository === "default" ? undefined : row.repository });

/** Whether a backup is proven good, as a status. @param {Row} row */
function proofOf(row) {
  if (!row.id) return t.detail.unreadable;
  if (!row.proof) return t.detail.notVerified;
  return row.proof.startsWith("bad") ? `error: ${row.proof}` : "ok";
}

/** @satisfies {Action} */
const CREATE = {
  request: /** @type {const} */ ("POST /2/instances"),
  label: t.actions.createInstance,
  first: ["name", "os", "image", "disk_template", "disks", "nics", "beparams", "hvparams", "pnode", "snode", "group_name", "iallocator", "start"],
  fixed: { __version__: 1, mode: "create" },
  typed: () => ({ disks: [{ size: "10G" }], nics: [] }),
  plan: "place",
};

const INSTANCE_FIELDS = [
  "name", "status", "admin_state", "oper_state", "pnode", "snodes", "pnode.group", "os", "disk_template", "hypervisor",
  "be/maxmem", "be/vcpus", "oper_ram", "oper_vcpus", "disk_usage", "disk.sizes", "disk.uuids", "nic.ips", "nic.macs",
  "nic.networks.names", "nic.links", "nic.modes", "tags", "ctime", "uuid", "forthcoming", "serial_no",
  "snapshots", "backup.last", "backup.time", "backup.verified", "backup.verified_time", "backup.every", "backup.at", "backup.repository",
];

/** @type {Record<string, Kind>} */
export const KINDS = {
  instance: {
    title: t.kinds.instances, one: t.kinds.instance, resource: "instance", key: "name", path: "instances", icon: "▣", history: true,
    fields: INSTANCE_FIELDS,
    refine: (rows) => rows.filter((row) => !row.forthcoming),
    columns: [
      column("name", t.fields.name, { kind: "link", width: 140 }),
      column("status", t.fields.status, { kind: "status", width: 104 }),
      ref("node", "pnode", t.fields.node, { width: 64 }),
      column("snodes", t.fields.secondary, { show: (row) => (row.snodes ?? []).map(short).join(", "), width: 76 }),
      column("os", t.fields.os, { width: 120 }),
      column("be/maxmem", t.fields.memory, { show: (row) => size(row["be/maxmem"]), right: true, width: 66 }),
      column("be/vcpus", t.fields.vcpus, { right: true, width: 46 }),
      column("disk_usage", t.fields.disk, { show: (row) => size(row.disk_usage), right: true, width: 58 }),
      column("disk_template", t.fields.template, { width: 80 }),
      column("nic.ips", t.fields.addresses, { show: (row) => (row["nic.ips"] ?? []).filter(Boolean).join(", "), kind: "mono", width: 100 }),
      { ...TAGS, width: 96 },
      column("pnode.group", t.fields.group, { hidden: true, width: 110 }),
      column("hypervisor", t.fields.hypervisor, { hidden: true, width: 90 }),
      column("backup.time", t.detail.lastBackup, { show: (row) => moment(row["backup.time"]), hidden: true, width: 150 }),
      MADE,
    ],
    create: [CREATE], actions: INSTANCE_ACTIONS,
  },
  node: {
    title: t.kinds.nodes, one: t.kinds.node, resource: "node", key: "name", path: "nodes", icon: "▤", history: true,
    fields: [
      "name", "group", "role", "offline", "drained", "master_candidate", "master_capable", "vm_capable", "powered",
      "mtotal", "mfree", "mnode", "dtotal", "dfree", "ctotal", "pinst_cnt", "sinst_cnt", "pinst_list", "sinst_list",
      "pip", "sip", "tags", "uuid", "reserved.memory", "reserved.disk", "reserved.count", "maintenance", "ctime",
    ],
    refine: (rows) => rows.map((row) => ({ ...row, state: stateOf(row), memory_used: used(row.mtotal, row.mfree), disk_used: used(row.dtotal, row.dfree) })),
    columns: [
      column("name", t.fields.name, { kind: "link", width: 136 }),
      column("state", t.fields.state, { kind: "status", width: 92 }),
      column("role", t.fields.role, { show: (row) => t.roles[/** @type {keyof typeof t.roles} */ (row.role)] ?? row.role, width: 120 }),
      ref("group", "group", t.fields.group, { width: 80 }),
      column("memory_used", t.fields.memory, { kind: "bar", show: (row) => freeOf(row.mfree, row.mtotal), width: 179 }),
      column("disk_used", t.fields.disk, { kind: "bar", show: (row) => freeOf(row.dfree, row.dtotal), width: 179 }),
      column("ctotal", t.fields.cpus, { right: true, width: 44 }),
      column("pinst_cnt", t.fields.primaries, { right: true, width: 66 }),
      column("sinst_cnt", t.fields.secondaries, { right: true, width: 84 }),
      column("pip", t.fields.address, { kind: "mono", width: 130, hidden: true }),
      { ...TAGS, hidden: true },
    ],
    actions: [
      { request: "POST /2/nodes/{node_name}/migrate", label: t.actions.migrateNode, first: ["target_node", "mode"], danger: c.migrateNode },
      { request: "PUT /2/placement/maintenance", label: t.actions.maintenance, first: ["node_names", "on", "disks_too"], danger: c.maintenance, typed: (row) => ({ node_names: [row.name], on: !row.maintenance }) },
      { request: "POST /2/nodes/{node_name}/evacuate", label: t.actions.evacuate, first: ["mode", "remote_node", "iallocator"], danger: c.evacuate },
      { request: "PUT /2/nodes/{node_name}/role", label: t.actions.role, first: ["role"], bulk: true },
      { request: "POST /2/nodes/{node_name}/modify", label: t.actions.modify, first: ["offline", "drained", "ndparams"] },
      { request: "POST /2/nodes/{node_name}/powercycle", label: t.actions.powercycle, danger: c.powercycle },
      { request: "POST /2/nodes/{node_name}/fence", label: t.actions.fence, danger: c.fence },
      { request: "PUT /2/nodes/{name}/tags", label: t.actions.tag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/nodes/{name}/tags", label: t.actions.untag, bulk: true, first: ["tag"] },
    ],
  },
  group: {
    title: t.kinds.groups, one: t.kinds.group, resource: "group", key: "name", path: "groups", icon: "▥", history: true,
    fields: ["name", "alloc_policy", "node_cnt", "pinst_cnt", "node_list", "pinst_list", "ndparams", "ipolicy", "tags", "uuid", "ctime"],
    columns: [
      column("name", t.fields.name, { kind: "link", width: 170 }),
      column("alloc_policy", t.fields.policy, { width: 130 }),
      column("node_cnt", t.fields.nodes, { right: true, width: 90 }),
      column("pinst_cnt", t.fields.instances, { right: true, width: 100 }),
      TAGS, MADE,
    ],
    create: [{ request: "POST /2/groups", label: t.actions.createGroup, first: ["name", "alloc_policy"] }],
    actions: [
      { request: "PUT /2/placement/balance", label: t.actions.balance, first: ["group_name", "max_moves", "explain", "what_if"], danger: c.balance, typed: (row) => ({ group_name: row.name, explain: true }) },
      { request: "PUT /2/groups/{group_name}/assign-nodes", label: t.actions.assign, first: ["nodes"] },
      { request: "PUT /2/groups/{group_name}/modify", label: t.actions.modify, first: ["alloc_policy", "custom_ndparams", "custom_ipolicy"] },
      { request: "PUT /2/groups/{group_name}/rename", label: t.actions.rename, first: ["new_name"] },
      { request: "PUT /2/groups/{name}/tags", label: t.actions.tag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/groups/{name}/tags", label: t.actions.untag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/groups/{group_name}", label: t.actions.remove, danger: c.removeGroup },
    ],
  },
  disk: {
    title: t.kinds.disks, one: t.kinds.disk, resource: "disk", key: "uuid", path: "disks", icon: "◍", history: true,
    fields: ["uuid", "name", "size", "template", "nodes", "instance", "index", "mode", "spindles", "attached", "path", "logical_id", "volumes", "minors", "forthcoming", "tags", "ctime"],
    columns: [
      column("uuid", t.fields.uuid, { kind: "link", width: 300 }),
      column("name", t.fields.name, { width: 140 }),
      column("size", t.fields.size, { show: (row) => size(row.size), right: true, width: 90 }),
      column("template", t.fields.template, { width: 90 }),
      ref("instance", "instance", t.fields.instance, { width: 200 }),
      column("index", t.fields.index, { right: true, width: 66 }),
      column("nodes", t.fields.nodes, { show: (row) => (row.nodes ?? []).map(short).join(", "), width: 160 }),
      column("mode", t.fields.mode, { width: 66 }),
      TAGS, MADE,
    ],
    create: [{ request: "POST /2/disks", label: t.actions.createDisk, first: ["disk_template", "disk", "nodes"] }],
    actions: [
      { request: "POST /2/disks/{disk_name}/grow", label: t.actions.grow, first: ["amount", "absolute"], danger: c.grow },
      { request: "PUT /2/disks/{disk_name}/attach", label: t.actions.attach, first: ["instance_name", "index"], when: (row) => !row.instance },
      { request: "PUT /2/disks/{disk_name}/detach", label: t.actions.detach, when: (row) => Boolean(row.instance), danger: c.detach },
      { request: "PUT /2/disks/{disk_name}/modify", label: t.actions.modify, first: ["mode", "spindles"] },
      { request: "PUT /2/disks/{disk_name}/rename", label: t.actions.rename, first: ["new_name"] },
      { request: "PUT /2/disks/{name}/tags", label: t.actions.tag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/disks/{name}/tags", label: t.actions.untag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/disks/{disk_name}", label: t.actions.remove, danger: c.removeDisk, when: (row) => !row.instance },
    ],
  },
  network: {
    title: t.kinds.networks, one: t.kinds.network, resource: "network", key: "name", path: "networks", icon: "◇", history: true,
    fields: ["name", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count", "reserved_count", "map", "group_list", "inst_list", "external_reservations", "tags", "uuid", "ctime"],
    columns: [
      column("name", t.fields.name, { kind: "link", width: 200 }),
      column("network", t.fields.network, { kind: "mono", width: 150 }),
      column("gateway", t.fields.gateway, { kind: "mono", width: 130 }),
      column("network6", t.fields.network6, { kind: "mono", width: 170 }),
      column("free_count", t.fields.free, { right: true, width: 80 }),
      column("reserved_count", t.fields.usedCount, { right: true, width: 80 }),
      column("group_list", t.fields.groups, { show: (row) => (row.group_list ?? []).map((/** @type {any} */ item) => [item].flat()[0]).join(", "), width: 150 }),
      TAGS,
    ],
    create: [{ request: "POST /2/networks", label: t.actions.createNetwork, first: ["name", "network", "gateway", "network6", "mac_prefix"] }],
    actions: [
      { request: "PUT /2/networks/{network_name}/connect", label: t.actions.connect, first: ["group_name", "network_mode", "network_link"] },
      { request: "PUT /2/networks/{network_name}/disconnect", label: t.actions.disconnect, first: ["group_name"], danger: c.disconnect },
      { request: "PUT /2/networks/{network_name}/modify", label: t.actions.modify, first: ["gateway", "add_reserved_ips", "remove_reserved_ips"] },
      { request: "PUT /2/networks/{network_name}/rename", label: t.actions.rename, first: ["new_name"] },
      { request: "PUT /2/networks/{name}/tags", label: t.actions.tag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/networks/{name}/tags", label: t.actions.untag, bulk: true, first: ["tag"] },
      { request: "DELETE /2/networks/{network_name}", label: t.actions.remove, danger: c.removeNetwork },
    ],
  },
  reservation: {
    title: t.kinds.reservations, one: t.kinds.reservation, resource: "instance", key: "name", path: "reservations", icon: "◌", history: true,
    fields: ["name", "forthcoming", "owner", "expires", "reserved_for", "pnode", "snodes", "be/maxmem", "be/vcpus", "disk_usage", "disk_template", "os", "tags", "ctime", "uuid"],
    refine: (rows) => rows.filter((row) => row.forthcoming),
    columns: [
      column("name", t.fields.name, { kind: "link", width: 170 }),
      column("owner", t.fields.owner, { width: 120 }),
      column("expires", t.fields.expires, { show: (row) => (row.expires ? moment(row.expires) : t.never), width: 160 }),
      ref("node", "pnode", t.fields.node, { width: 140 }),
      column("be/maxmem", t.fields.memory, { show: (row) => size(row["be/maxmem"]), right: true, width: 74 }),
      column("be/vcpus", t.fields.vcpus, { right: true, width: 50 }),
      column("disk_usage", t.fields.disk, { show: (row) => size(row.disk_usage), right: true, width: 74 }),
      column("reserved_for", t.fields.note, { width: 200 }),
      TAGS,
    ],
    create: [{
      ...CREATE, label: t.actions.reserve, fixed: { ...CREATE.fixed, forthcoming: true },
      first: ["name", "disk_template", "disks", "beparams", "pnode", "snode", "group_name", "iallocator", "os", "nics"],
    }],
    actions: [
      { request: "POST /2/instances/{instance_name}/create", label: t.actions.commit, first: ["os", "image", "start"] },
      { request: "PUT /2/reservations/{instance_name}/modify", label: t.actions.modify, first: ["owner", "expires", "never_expires", "note"] },
      { request: "DELETE /2/instances/{instance_name}", label: t.actions.release, bulk: true, danger: c.release },
    ],
  },
  image: {
    title: t.kinds.images, one: t.kinds.image, resource: "image", key: "name", path: "images", icon: "◫", history: true,
    fields: ["name", "description", "status", "disk_size", "file_size", "source", "source_format", "nodes", "copies", "inst_cnt", "inst_list", "sha256", "tags", "uuid", "ctime"],
    columns: [
      column("name", t.fields.name, { kind: "link", width: 200 }),
      column("status", t.fields.status, { kind: "status", width: 110 }),
      column("description", t.fields.description, { width: 240 }),
      column("disk_size", t.fields.size, { show: (row) => size(row.disk_size), right: true, width: 90 }),
      column("inst_cnt", t.fields.instances, { right: true, width: 90 }),
      column("copies", t.fields.copies, { show: (row) => plain(row.copies), width: 150 }),
      column("source", t.fields.source, { kind: "mono", width: 260 }), MADE,
    ],
    create: [{ request: "POST /2/images", label: t.actions.createImage, first: ["name", "source", "description"] }],
    actions: [
      { request: "PUT /2/images/{image_name}/modify", label: t.actions.modify, first: ["description"] },
      { request: "PUT /2/images/{image_name}/rename", label: t.actions.rename, first: ["new_name"] },
      { request: "DELETE /2/images/{image_name}", label: t.actions.remove, danger: c.removeImage },
    ],
  },
  backup: {
    title: t.kinds.backups, one: t.kinds.backup, resource: "backup", key: "key", subject: "instance", path: "backups", icon: "▽", sort: "time", down: true,
    fields: ["repository", "instance", "instance_uuid", "id", "time", "mode", "consistency", "base", "disks", "size", "read", "stored", "proof", "proof_time"],
    refine: (rows) => rows.map((row) => ({ ...row, key: `${row.instance ?? row.repository}@${row.id ?? "-"}`, state: proofOf(row) })),
    columns: [
      column("key", t.fields.id, { kind: "link", value: (row) => row.id ?? t.detail.unreadable, width: 150 }),
      ref("instance", "instance", t.fields.instance, { width: 170 }),
      column("time", t.fields.created, { show: (row) => moment(row.time), width: 150 }),
      column("state", t.detail.proof, { kind: "status", width: 130 }),
      column("mode", t.fields.mode, { width: 80 }),
      column("consistency", t.detail.consistency, { width: 96 }),
      column("size", t.fields.size, { show: (row) => size(row.size), right: true, width: 80 }),
      column("stored", t.detail.stored, { show: (row) => size(row.stored), right: true, width: 80 }),
      column("repository", t.detail.repository, { kind: "mono", width: 130 }),
      column("proof_time", t.detail.verified, { show: (row) => moment(row.proof_time), width: 150, hidden: true }),
    ],
    create: [{ ...BACKUP.run, first: ["instance_name", "repository", "full"] }],
    actions: [
      { ...BACKUP.verify, when: isReadable, typed: place },
      { ...BACKUP.restore, when: isReadable, typed: place },
      {
        request: "POST /2/instances", label: t.actions.restoreAs, first: ["name", "src_node", "pnode", "disk_template", "start"], when: isReadable,
        fixed: { __version__: 1, mode: "import" }, typed: (row) => ({ src_path: row.instance, ...place(row), disks: [], nics: [] }),
      },
      { request: "PUT /2/instances/{instance_name}/prune-backups", label: t.actions.prune, first: ["keep_last", "keep_daily", "keep_weekly", "keep_monthly"], when: isReadable, danger: c.prune, typed: (row) => ({ repository: place(row).repository }) },
    ],
  },
  export: {
    title: t.kinds.exports, one: t.kinds.export, resource: "export", key: "key", subject: "export", path: "exports", icon: "△",
    fields: ["node", "export"],
    refine: (rows) => rows.filter((row) => row.export).map((row) => ({ ...row, key: `${row.export}@${row.node}` })),
    columns: [
      column("key", t.fields.name, { kind: "link", width: 300 }),
      ref("instance", "export", t.fields.instance, { width: 260 }),
      ref("node", "node", t.fields.node, { width: 200 }),
    ],
    create: [{ request: "PUT /2/instances/{instance_name}/export", label: t.actions.backup, first: ["instance_name", "destination", "shutdown"], danger: c.export }],
    actions: [
      { request: "POST /2/instances", label: t.actions.importIt, first: ["name", "src_node", "disk_template", "disks", "nics", "pnode"], fixed: { __version__: 1, mode: "import" }, typed: (row) => ({ name: row.export, src_node: row.node, disks: [], nics: [] }) },
      { request: "DELETE /2/instances/{instance_name}/export", label: t.actions.remove, danger: c.removeExport, typed: (row) => ({ instance_name: row.export }) },
    ],
  },
  job: {
    title: t.kinds.jobs, one: t.kinds.job, resource: "job", key: "id", path: "jobs", icon: "▷", sort: "id", down: true,
    fields: ["id", "status", "summary", "received_ts", "start_ts", "end_ts", "priority", "user"],
    columns: [
      column("id", t.fields.id, { kind: "link", right: true, width: 76 }),
      column("status", t.fields.status, { kind: "status", width: 110 }),
      column("summary", t.fields.summary, { show: (row) => [row.summary].flat().join(", "), width: 330 }),
      column("user", t.fields.user, { width: 140 }),
      column("received_ts", t.fields.received, { show: (row) => moment(row.received_ts), width: 160 }),
      column("duration", t.fields.duration, { kind: "duration", right: true, width: 100 }),
      column("priority", t.fields.priority, { right: true, width: 76 }),
    ],
    actions: [],
  },
  filter: {
    title: t.kinds.filters, one: t.kinds.filter, resource: "filter", key: "uuid", path: "filters", icon: "▼",
    fields: ["uuid", "priority", "action", "predicates", "watermark", "reason_trail"],
    columns: [
      column("uuid", t.fields.uuid, { kind: "link", width: 300 }),
      column("priority", t.fields.priority, { right: true, width: 80 }),
      column("action", t.fields.action, { show: (row) => plain(row.action), width: 140 }),
      column("predicates", t.fields.predicates, { show: (row) => JSON.stringify(row.predicates), kind: "mono", width: 360 }),
      column("watermark", t.fields.watermark, { right: true, width: 100 }),
    ],
    create: [{ request: "POST /2/filters", label: t.actions.createFilter, first: ["action", "predicates", "priority"], danger: c.filter }],
    actions: [
      { request: "PUT /2/filters/{uuid}", label: t.actions.modify, first: ["action", "predicates", "priority"], danger: c.filter },
      { request: "DELETE /2/filters/{uuid}", label: t.actions.remove, danger: c.removeFilter },
    ],
  },
  notification: {
    title: t.kinds.notifications, one: t.kinds.notification, resource: "notification", list: "/2/notifications", key: "name", path: "notifications", icon: "✉",
    fields: ["name", "way", "target", "qfilter", "interval", "server", "sender", "waiting", "sent", "failed", "lost", "last_sent", "problem"],
    refine: (rows) => rows.map((row) => ({ ...row, state: row.problem ? "failed" : "ok" })),
    columns: [
      column("name", t.fields.name, { kind: "link", width: 150 }),
      column("state", t.fields.state, { kind: "status", width: 90 }),
      column("way", t.fields.way, { width: 90 }),
      column("target", t.fields.target, { kind: "mono", width: 240 }),
      column("qfilter", t.fields.noticeFilter, { show: (row) => (row.qfilter ? JSON.stringify(row.qfilter) : "–"), kind: "mono", width: 200 }),
      column("waiting", t.fields.waiting, { right: true, width: 70 }),
      column("sent", t.fields.sent, { right: true, width: 60 }),
      column("lost", t.fields.lost, { right: true, width: 60 }),
      column("last_sent", t.fields.lastSent, { show: (row) => moment(row.last_sent), width: 150 }),
      column("problem", t.fields.problem, { width: 240 }),
    ],
    create: [{ request: "POST /2/notifications", label: t.actions.createNotification, first: ["name", "webhook", "mail", "server", "sender", "command", "qfilter"] }],
    actions: [
      { request: "POST /2/notifications/{notification_name}/test", label: t.actions.test },
      { request: "PUT /2/notifications/{notification_name}/modify", label: t.actions.modify, first: ["qfilter", "interval"] },
      { request: "DELETE /2/notifications/{notification_name}", label: t.actions.remove, danger: c.removeNotification },
    ],
  },
  os: {
    title: t.kinds.os, one: t.kinds.osOne, resource: "os", key: "name", path: "os", icon: "◉",
    fields: ["name", "valid", "variants", "parameters", "api_versions", "blacklisted", "hidden", "trusted", "hypervisors", "node_status"],
    columns: [
      column("name", t.fields.name, { kind: "link", width: 170 }),
      column("valid", t.fields.valid, { show: (row) => plain(row.valid), width: 80 }),
      column("variants", t.fields.variants, { show: (row) => plain(row.variants), width: 220 }),
      column("api_versions", t.fields.apiVersions, { show: (row) => plain(row.api_versions), width: 110 }),
      column("trusted", t.fields.trusted, { show: (row) => plain(row.trusted), width: 80 }),
      column("hidden", t.fields.hidden, { show: (row) => plain(row.hidden), width: 80 }),
    ],
    actions: [],
  },
};
for (const [name, kind] of Object.entries(KINDS)) {
  if (name === "disk" || name === "filter") kind.query = "uuid";
}

export const BY_PATH = Object.fromEntries(Object.entries(KINDS).map(([name, kind]) => [kind.path, name]));
export { tone };
