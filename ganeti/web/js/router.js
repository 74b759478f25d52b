// Which page is shown: the address below /ui/.
import { signal } from "./html.js";

const BASE = "/ui/";

/** @returns {{parts: string[], query: URLSearchParams}} */
function read() {
  const parts = location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(location.search) };
}

export const route = signal(read());

/** @param {string} path below /ui/ */
export function go(path) {
  history.pushState(null, "", BASE + path);
  route.value = read();
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** The address of a page. @param {...string} parts */
export function url(...parts) {
  return BASE + parts.map(encodeURIComponent).join("/");
}

/** Keeps words of the query in the address without a new entry of the history. @param {Record<string, string>} values */
export function remember(values) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
}

window.addEventListener("popstate", () => (route.value = read()));
document.addEventListener("click", (event) => {
  const link = /** @type {HTMLElement} */ (event.target).closest?.("a");
  if (!link?.hasAttribute("href") || event.ctrlKey || event.metaKey || event.shiftKey || link.getAttribute("target")) return;
  const { origin, pathname, search } = new URL(link.getAttribute("href") ?? "", location.href); // links in pictures have no such members
  if (origin !== location.origin || !pathname.startsWith(BASE) || pathname.endsWith(".html")) return;
  event.preventDefault();
  go(pathname.slice(BASE.length) + search);
});
