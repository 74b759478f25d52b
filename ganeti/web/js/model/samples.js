// Samples of the API as plots; pure.

/** @typedef {{title: string, names: string[], unit: string, data: any[], latest: (number | null)[]}} Plot */

/**
 * One plot for each measure that has a value; reading and writing of one device are in one.
 * @param {{step: number, start: number, series: Record<string, (number | null)[]>, units: Record<string, string>}} found
 * @returns {Plot[]}
 */
export function series(found) {
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const name of Object.keys(found.series)) {
    if (found.series[name].every((value) => value === null)) continue;
    const title = titleOf(name);
    groups.set(title, [...(groups.get(title) ?? []), name]);
  }
  return [...groups].map(([title, names]) => {
    const values = names.map((name) => found.series[name]);
    const times = (values[0] ?? []).map((_, index) => found.start + index * found.step);
    return {
      title,
      names: names.map((name) => (names.length > 1 ? (PAIR.exec(name)?.[2] ?? name) : name)),
      unit: found.units[names[0]] ?? "",
      data: [times, ...values],
      latest: values.map((all) => all.findLast((value) => value !== null) ?? null),
    };
  });
}

const PAIR = /^(.*?)_(read|write|receive|send)(_.*)?$/;

/** @param {string} name */
function titleOf(name) {
  const pair = PAIR.exec(name);
  return (pair ? pair[1] + (pair[3] ?? "") : name).replaceAll("_", " ").replace(" ops", " operations");
}

/** Labels of times: hours of a day, or days. @param {number[]} times seconds @param {number} span seconds between the ends */
export function timeLabels(times, span) {
  /** @type {Intl.DateTimeFormatOptions} */
  const form = span > 2 * 86_400 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  const made = new Intl.DateTimeFormat("en-GB", form);
  return times.map((time) => made.format(time * 1000));
}
