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
 * @returns {Map<string, {fits: boolean, best: boolean, text: string}>} without an answer, empty
 */
export function verdicts(answer) {
  const found = new Map();
  for (const group of answer?.groups ?? []) {
    for (const place of group.places ?? []) {
      const [name] = place.nodes;
      if (found.has(name)) continue;
      const best = answer.nodes?.[0] === name;
      found.set(name, { fits: true, best, text: `score ${place.score.toFixed(2)}` });
    }
    for (const { node, text } of group.nodes ?? []) {
      if (!found.has(node)) found.set(node, { fits: false, best: false, text: text.replace(`${node} `, "") });
    }
  }
  return found;
}

/**
 * The moves of a plan to balance groups, or to empty nodes, and what stays where it is.
 * @param {any} plan result of OP_CLUSTER_BALANCE or OP_NODE_MAINTENANCE
 * @returns {{moves: {instance: string, text: string}[], stay: {instance: string, text: string}[], groups: string[]}}
 */
export function movesOf(plan) {
  const groups = (plan.groups ?? []).filter((/** @type {any} */ group) => group.moves);
  const moves = [...(plan.moves ?? []), ...groups.flatMap((/** @type {any} */ group) => group.moves)];
  return {
    moves: moves.map((move) => ({
      instance: move.instance,
      text: [`${move.from.join(", ")} → ${move.to.join(", ")}: ${move.steps.join(", ")}`, ...(move.reasons ?? [])].join("; "),
    })),
    stay: (plan.stay ?? []).map((/** @type {any} */ item) => ({ instance: item.instance, text: item.reason })),
    groups: groups.map((/** @type {any} */ group) => `${group.group}: score ${group.score.toFixed(2)} → ${group.score_after.toFixed(2)}`),
  };
}
