// Values as texts; pure.

const UNITS = ["MiB", "GiB", "TiB", "PiB"];

/** @param {number | null | undefined} mebibytes */
export function size(mebibytes) {
  if (mebibytes == null || Number.isNaN(mebibytes)) return "–";
  let value = mebibytes;
  let index = 0;
  while (Math.abs(value) >= 1024 && index < UNITS.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")} ${UNITS[index]}`;
}

/** @param {number | null | undefined} bytes */
export function bytes(bytes) {
  return bytes == null ? "–" : bytes < 1048576 ? `${Math.round(bytes / 1024)} KiB` : size(bytes / 1048576);
}

/** Seconds since 1970, or `[seconds, microseconds]`, as seconds. @param {any} time */
export function seconds(time) {
  return Array.isArray(time) ? time[0] + time[1] / 1e6 : time;
}

/** @param {any} time @returns {string} */
export function moment(time) {
  const at = seconds(time);
  if (at == null) return "–";
  const date = new Date(at * 1000);
  const pad = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return (
    `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ` +
    `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  );
}

/** @param {any} time @returns {string} */
export function clock(time) {
  return moment(time).slice(11);
}

/** @param {number | null | undefined} given seconds @returns {string} */
export function duration(given) {
  if (given == null) return "–";
  const total = Math.max(0, given);
  if (total < 10) return `${total.toFixed(1)} s`;
  if (total < 60) return `${Math.round(total)} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min ${Math.round(total % 60)} s`;
  if (total < 86400) return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
  return `${Math.floor(total / 86400)} d ${Math.floor((total % 86400) / 3600)} h`;
}

/** @param {any} time @param {number} now seconds */
export function ago(time, now) {
  const at = seconds(time);
  return at == null ? "–" : `${duration(now - at)} ago`;
}

/** Any value in one line. @param {any} value @returns {string} */
export function plain(value) {
  if (value == null || value === "") return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) return value.length ? value.map(plain).join(", ") : "–";
  if (typeof value === "object") {
    return Object.entries(value).map(([key, item]) => `${key}=${plain(item)}`).join(", ") || "–";
  }
  return String(value);
}

/** First part of a host name. @param {string | null | undefined} name */
export function short(name) {
  return name ? name.split(".")[0] : "–";
}

/** What a status means for its colour. @param {string} status */
export function tone(status) {
  if (["running", "success", "online", "ok", "available", "ready"].includes(status)) return "good";
  if (/^ERROR|error|failed|offline|nodedown|broken|lost/.test(status)) return "bad";
  if (["waiting", "queued", "canceling", "drained", "warning", "degraded"].includes(status)) return "warn";
  return "calm";
}
