// The frame of all pages: navigation, state of the connection, job log.
import { expired, findSession, logOut, session } from "./api.js";
import { effect, html, render, signal } from "./html.js";
import { BY_PATH, KINDS } from "./kinds.js";
import { route, url } from "./router.js";
import { activeJobs, begin, cluster, link, linkSince, lists, now } from "./store.js";
import { t } from "./text.js";
import { isListed, open } from "./view/actions.js";
import { DetailPage } from "./view/detail.js";
import { Dock } from "./view/dock.js";
import { FormDrawer } from "./view/form.js";
import { ListPage } from "./view/list.js";
import { LogIn, SessionGuard } from "./view/login.js";
import { MapPage } from "./view/map.js";
import { OverviewPage } from "./view/overview.js";
import { RecoveryPage } from "./view/recovery.js";
import { SessionsPage } from "./view/sessions.js";

const theme = signal(localStorage.getItem("theme") ?? "auto");
const isMenuOpen = signal(false);
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("theme", theme.value);
});

/** @type {[string, string[]][]} */
const SECTIONS = [
  [t.nav.compute, ["instance", "reservation", "node", "group"]],
  [t.nav.storage, ["disk", "image", "backup", "export", "network"]],
  [t.nav.work, ["job", "filter", "notification", "os"]],
];

/** @param {{path: string, icon: string, text: string, count?: number | null}} props */
function NavLink({ path, icon, text, count }) {
  const isHere = (route.value.parts[0] ?? "") === path;
  return html`<a href=${path ? url(path) : "/ui/"} class=${isHere ? "here" : ""} aria-current=${isHere ? "page" : undefined} onClick=${() => (isMenuOpen.value = false)}>
    <i aria-hidden="true">${icon}</i><span>${text}</span>${count != null && html`<b>${count}</b>`}</a>`;
}

function Nav() {
  return html`<nav class=${isMenuOpen.value ? "nav open" : "nav"} aria-label=${t.nav.label}>
    <${NavLink} path="" icon="◈" text=${t.nav.overview} /><${NavLink} path="map" icon="▦" text=${t.nav.map} /><${NavLink} path="recovery" icon="✚" text=${t.recovery.title} />
    ${SECTIONS.map(([title, kinds]) => html`<div key=${title}><h2>${title}</h2>${kinds.filter(isListed).map((kind) => html`<${NavLink} key=${kind} path=${KINDS[kind].path} icon=${KINDS[kind].icon} text=${KINDS[kind].title}
      count=${kind === "job" ? activeJobs.value.length || null : lists[kind].value?.length} />`)}</div>`)}
    <div><h2>${t.nav.access}</h2><${NavLink} path="sessions" icon="◔" text=${t.nav.sessions} /></div></nav>`;
}

/** Seconds after which a lost connection may mean that another node is the master. */
const LONG = 10;

/** The same page at the address of the cluster, which goes with the master; for who came by the name of a node. */
function Elsewhere() {
  const name = cluster.value?.name;
  if (link.value !== "lost" || now.value - linkSince.value < LONG || !name || name === location.hostname) return null;
  const port = location.port && `:${location.port}`;
  return html`<a href=${`https://${name}${port}${location.pathname}`}>${t.link.elsewhere(name)}</a>`;
}

function Top() {
  return html`<header class="top">
    <button class="quiet burger" aria-label=${t.nav.label} aria-expanded=${isMenuOpen.value} onClick=${() => (isMenuOpen.value = !isMenuOpen.value)}>☰</button>
    <a class="brand" href="/ui/"><img src="/ui/icon.svg" alt="" width="20" height="20" /> ${cluster.value?.name ?? t.product}</a>
    <span class=${`link ${link.value}`} role="status"><i aria-hidden="true"></i>${t.link[/** @type {keyof typeof t.link} */ (link.value)]}</span><${Elsewhere} />
    <span class="grow"></span>
    <label class="theme"><span class="hidden">${t.theme.label}</span><select value=${theme.value} onChange=${(/** @type {any} */ e) => (theme.value = e.target.value)}>${/** @type {const} */ (["auto", "light", "dark"]).map((name) => html`<option key=${name} value=${name} selected=${theme.value === name}>${t.theme[name]}</option>`)}</select></label>
    <span class="who" title=${t.login.asUser(session.value?.user ?? "")}>${session.value?.user}</span><button class="quiet" onClick=${logOut}>${t.login.out}</button></header>`;
}

function Page() {
  const [first, second] = route.value.parts;
  const kind = BY_PATH[first];
  if (kind && second) return html`<${DetailPage} key=${second} kind=${kind} name=${second} />`;
  if (kind) return html`<${ListPage} key=${kind} kind=${kind} />`;
  if (first === "map") return html`<${MapPage} />`;
  if (first === "recovery") return html`<${RecoveryPage} />`;
  if (first === "sessions") return html`<${SessionsPage} />`;
  return html`<${OverviewPage} />`;
}

function App() {
  if (session.value === undefined) return html`<p class="empty">${t.list.loading}</p>`;
  if (session.value === null) return html`<${LogIn} />`;
  return html`<a class="to-main" href="#main">${t.skip}</a><div class="frame" inert=${Boolean(open.value) || expired.value}><${Top} /><${Nav} /><main id="main" tabindex="-1"><${Page} /></main><${Dock} /></div><${FormDrawer} /><${SessionGuard} />`;
}

document.addEventListener("keydown", (event) => {
  const inField = /^(INPUT|TEXTAREA|SELECT)$/.test(/** @type {HTMLElement} */ (event.target).tagName);
  if (event.key === "/" && !inField) {
    event.preventDefault();
    document.getElementById("search")?.focus();
  }
  if (event.key === "Escape") document.querySelectorAll("details.menu[open]").forEach((menu) => menu.removeAttribute("open"));
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    const target = /** @type {Element} */ (event.target);
    if (!menu.contains(target) || target.closest(".pop button")) menu.removeAttribute("open");
  }
});

let begun = false;
effect(() => {
  if (session.value && !begun) {
    begun = true;
    void begin();
  }
});
effect(() => {
  const page = BY_PATH[route.value.parts[0]];
  document.title = [route.value.parts[1] ?? (page && KINDS[page].title), cluster.value?.name ?? t.product].filter(Boolean).join(" · ");
});
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
void findSession();
