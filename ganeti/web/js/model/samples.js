// Samples of the API as plots; pure.

/** @typedef {{title: string, names: string[], unit: string, data: any[], latest: (number | null)[]}} Plot */

/**
 * One plot for each measure; reading and writing of one device are in one.
 * @param {{step: number, start: number, series: Record<string, (number | null)[]>, units: Record<string, string>}} found
 * @returns {Plot[]}
 */
export function series(found) {
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const name of Object.keys(found.series)) {
    const title = titleOf(name);
    groups.set(title, [...(groups.get(title) ?? []), name]);
  }
  return [...groups].map(([title, names]) => {
    const values = names.map((name) => found.series[name]);
    const times = (values[0] ?? []).map((_, index) => found.start + index * found.step);
    return {
      title,
      names: names.map((name) => name.replaceAll("_", " ")),
      unit: found.units[names[0]] ?? "",
      data: [times, ...values],
      latest: values.map((all) => all.findLast((value) => value !== null) ?? null),
    };
  });
}

/** @param {string} name */
function titleOf(name) {
  const pair = /^(.*?)_(read|write|receive|received|send|sent|in|out|rx|tx)(_.*)?$/.exec(name);
  return (pair ? pair[1] + (pair[3] ?? "") : name).replaceAll("_", " ");
}
