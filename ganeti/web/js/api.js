// Calls of the remote API in the session of this browser.
import { signal } from "./html.js";
import { t } from "./text.js";

/** The session: undefined while it is asked for, null without one. @type {{value: any}} */
export const session = signal(/** @type {any} */ (undefined));
/** Whether a session ended while the page was open: what was typed is kept. */
export const expired = signal(false);

export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Called when the server cannot be reached. */
export const trouble = { tell: () => {} };

/** @param {string} address @param {RequestInit} init */
async function reach(address, init) {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    trouble.tell();
    throw new TypeError(t.link.unreachable, { cause: error });
  }
}

/** @param {Response} response @returns {Promise<string>} */
async function problemOf(response) {
  try {
    const body = await response.json();
    const isPhrase = response.status !== 400 && response.status > 400 && response.status < 500;
    return String((isPhrase ? body.explain : body.message) || body.message || body.explain);
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

/**
 * @template {Api.Method} M
 * @param {M} method @param {Api.Path<M>} path
 * @param {{query?: [string, string][], body?: any, headers?: Record<string, string>, signal?: AbortSignal}} [more]
 * @returns {Promise<Response>}
 */
export async function send(method, path, more = {}) {
  const query = new URLSearchParams(more.query ?? []).toString();
  /** @type {Record<string, string>} */
  const headers = { "X-Requested-With": "ui", ...more.headers };
  if (more.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.value?.csrf) headers["X-Ganeti-CSRF"] = session.value.csrf;
  const response = await reach(query ? `${path}?${query}` : path, {
    method,
    headers,
    body: more.body === undefined ? undefined : JSON.stringify(more.body),
    credentials: "same-origin",
    signal: more.signal,
  });
  if (response.status === 401 && session.value) expired.value = true;
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return response;
}

/**
 * @template {Api.Method} M @template {Api.Path<M>} P
 * @param {M} method @param {P} path @param {Parameters<typeof send>[2]} [more]
 * @returns {Promise<Api.Answer<M, P>>}
 */
export async function call(method, path, more) {
  const response = await send(method, path, more);
  return response.json();
}

/**
 * @template {Api.Path<"GET">} P
 * @param {P} path @param {[string, string][]} [query]
 */
export function get(path, query) {
  return call("GET", path, { query });
}

/**
 * An answer, or null where this version of the server or these rights have none.
 * @template {Api.Path<"GET">} P
 * @param {P} path @param {[string, string][]} [query]
 */
export async function maybe(path, query) {
  try {
    return await get(path, query);
  } catch (error) {
    if (error instanceof ApiError && [403, 404, 501].includes(error.status)) return null;
    throw error;
  }
}

/** Rows of a query. @param {string} kind @param {string[]} fields @param {any[] | null} [filter] */
export function query(kind, fields, filter = null) {
  return call("PUT", `/2/query/${kind}`, { body: { fields, qfilter: filter } });
}

/** The result of the first opcode of a job, when it has ended well. @param {number} id @returns {Promise<any>} */
export async function resultOf(id) {
  for (;;) {
    const job = await get(`/2/jobs/${id}/wait`, [["timeout", "60"]]);
    if (job.status === "success") return job.opresult[0];
    if (job.status === "error" || job.status === "canceled") {
      throw new ApiError(500, failureOf(job));
    }
  }
}

/** Why a job failed, in words. @param {any} job */
export function failureOf(job) {
  const found = (job.opresult ?? []).find((/** @type {any} */ item) => Array.isArray(item) && Array.isArray(item[1]));
  return found ? String(found[1][0]) : t.jobs.failed;
}

/** Asks whether there is a session already, until the server answers. */
export async function findSession() {
  try {
    const response = await fetch("/2/sessions/current", { headers: { "X-Requested-With": "ui" } });
    session.value = response.ok ? await response.json() : null;
  } catch {
    window.setTimeout(findSession, 2000);
  }
}

/** Takes the session of another window of this browser, in place of one that ended. @returns {Promise<boolean>} whether there is one */
export async function takeOver() {
  const found = await maybe("/2/sessions/current").catch(() => null);
  if (!found) return false;
  session.value = found;
  expired.value = false;
  return true;
}

/** @param {Record<string, string>} proof user and password, or token */
export async function logIn(proof) {
  session.value = await call("POST", "/2/sessions", { body: proof });
  expired.value = false;
  localStorage.setItem("login", String(Date.now())); // other windows hear of it
}

export async function logOut() {
  await send("DELETE", "/2/sessions/current").catch(() => undefined);
  location.assign("/ui/");
}
