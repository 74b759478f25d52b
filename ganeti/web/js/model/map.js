// The map: groups as racks, nodes as bars, guests as pieces of bars; pure.

/** @typedef {{name: string, group: string, state: string, memory: number, disk: number, cpus: number,
 *   memoryFree: number, diskFree: number, guests: Guest[], reserved: number, system: number,
 *   parts: {memory: number, disk: number, cpu: number}}} NodeBar */
/** @typedef {{name: string, status: string, memory: number, vcpus: number, share: number, mirrored: boolean}} Guest */

/**
 * @param {Record<string, any>[]} nodes @param {Record<string, any>[]} instances
 * @returns {{name: string, nodes: NodeBar[]}[]} groups by name, their nodes by name
 */
export function racks(nodes, instances) {
  /** @type {Map<string, Record<string, any>[]>} */
  const byNode = new Map();
  for (const guest of instances) {
    const there = byNode.get(guest.pnode);
    if (there) there.push(guest);
    else byNode.set(guest.pnode, [guest]);
  }
  /** @type {Map<string, NodeBar[]>} */
  const groups = new Map();
  for (const node of nodes) {
    const bar = barOf(node, byNode.get(node.name) ?? []);
    const there = groups.get(node.group);
    if (there) there.push(bar);
    else groups.set(node.group, [bar]);
  }
  return [...groups]
    .map(([name, bars]) => ({ name, nodes: bars.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })) }))
    .sort((a, b) => String(a.name).localeCompare(String(b.name)));
}

/** @param {Record<string, any>} node @param {Record<string, any>[]} guests @returns {NodeBar} */
function barOf(node, guests) {
  const total = node.mtotal || 1;
  const made = guests
    .map((guest) => ({
      name: guest.name,
      status: guest.status,
      memory: memoryOf(guest),
      vcpus: guest["be/vcpus"] ?? 0,
      share: Math.min(1, memoryOf(guest) / total),
      mirrored: guest.disk_template === "drbd",
    }))
    .sort((a, b) => b.memory - a.memory);
  const vcpus = made.filter((guest) => guest.status === "running").reduce((sum, guest) => sum + guest.vcpus, 0);
  return {
    name: node.name,
    group: node.group,
    state: stateOf(node),
    memory: node.mtotal,
    disk: node.dtotal,
    cpus: node.ctotal,
    memoryFree: node.mfree,
    diskFree: node.dfree,
    guests: made,
    reserved: (node["reserved.memory"] ?? 0) / total,
    system: Math.min(1, (node.mnode ?? 0) / total),
    parts: {
      memory: used(node.mtotal, node.mfree),
      disk: used(node.dtotal, node.dfree),
      cpu: node.ctotal ? Math.min(1, vcpus / node.ctotal) : 0,
    },
  };
}

/** @param {Record<string, any>} guest MiB that it has now, or would have */
function memoryOf(guest) {
  return guest.oper_ram ?? guest["be/maxmem"] ?? 0;
}

/** @param {number | null} total @param {number | null} free */
export function used(total, free) {
  return total && free != null ? Math.max(0, Math.min(1, (total - free) / total)) : 0;
}

/** @param {Record<string, any>} node */
export function stateOf(node) {
  if (node.offline) return "offline";
  if (node.drained) return "drained";
  return node.mtotal == null ? "unreachable" : "online";
}

/**
 * What the allocator said of a place, for each node: whether it may be chosen, and why not.
 * @param {any} answer result of OP_CLUSTER_PLACE
 * @returns {Map<string, {fits: boolean, best: boolean, text: string}>}
 */
export function verdicts(answer) {
  const found = new Map();
  for (const group of answer?.groups ?? []) {
    for (const item of group.nodes ?? []) {
      const name = item.node ?? item.name ?? item[0];
      const text = item.reason ?? item.text ?? item[1] ?? group.reason ?? "";
      if (name) found.set(name, { fits: false, best: false, text: String(text) });
    }
    (group.places ?? []).forEach((/** @type {any} */ place, /** @type {number} */ index) => {
      const name = place.nodes[0];
      if (!found.has(name)) found.set(name, { fits: true, best: index === 0, text: `score ${place.score.toFixed(2)}` });
    });
  }
  return found;
}
