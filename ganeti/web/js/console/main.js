// The page of one console: asks for a ticket, connects, says who controls and why it ended.
import { ApiError, call, findSession, get, session } from "../api.js";
import { effect, html, render, signal, useEffect, useRef } from "../html.js";
import { t } from "../text.js";
import { LogIn } from "../view/login.js";

const c = t.console;
const query = new URLSearchParams(location.search);
const name = query.get("instance") ?? "";
const kind = query.get("kind") ?? "serial";
const isKnown = name !== "" && (kind === "vnc" || kind === "serial");
const path = /** @type {const} */ (`/2/instances/${encodeURIComponent(name)}`);

/** Type in it, or only look. */
const mode = signal(query.get("mode") === "view" ? "view" : "control");
/** @type {{value: "connecting" | "connected" | "closed"}} */
const state = signal("connecting");
const why = signal("");
/** Who has the console open. @type {{value: any[]}} */
const viewers = signal([]);
/** The dialog that is open. @type {{value: null | "paste" | "password"}} */
const dialog = signal(null);
/** What the dialog's text is for. @type {(text: string) => void} */
let answer = () => undefined;
/** @type {any} */
let screen = null;
/** Codes of a console that ended with its guest or the guest's node, and of one whose node does not answer. */
const GUEST_ENDED = 4004, NODE_AWAY = 4006;
/** Milliseconds until the next try when the server cannot be reached, as while another node becomes the master. */
const AGAIN = 2000;
/** Counts connections: what an earlier one still has to say is not heard. */
let turn = 0;

const load = () => (kind === "vnc" ? import("./vnc.js") : import("./serial.js"));

/** @param {string} text */
function end(text) {
  state.value = "closed";
  why.value = text;
}

/** Connects, at once and again. @param {HTMLElement} box @param {string} wanted control or view */
async function connect(box, wanted) {
  const mine = ++turn;
  screen?.dispose();
  screen = null;
  mode.value = wanted;
  state.value = "connecting";
  why.value = "";
  history.replaceState(null, "", `?${new URLSearchParams({ instance: name, kind, mode: wanted })}`);
  try {
    const { attach } = await load();
    const made = await call("POST", `${path}/console-ticket`, { body: { kind, mode: wanted } });
    if (mine !== turn) return;
    const address = new URL(made.url, location.href);
    address.protocol = "wss:";
    const socket = new WebSocket(address, "binary");
    socket.addEventListener("close", (event) => mine === turn && closed(event));
    screen = attach(box, socket, {
      mayType: wanted === "control",
      label: c.label(kind, name),
      opened: () => mine === turn && opened(),
      askPassword: () => ask("password"),
      refused: (/** @type {string} */ text) => mine === turn && end(c.refused(text)),
    });
  } catch (error) {
    if (mine !== turn) return;
    end(/** @type {Error} */ (error).message);
    if (error instanceof TypeError) window.setTimeout(() => mine === turn && connect(box, wanted), AGAIN);
    if (error instanceof ApiError && error.status === 401) session.value = null;
  }
}

function opened() {
  state.value = "connected";
  screen?.focus();
  void look();
}

/** @param {CloseEvent} event */
async function closed(event) {
  if (state.value === "closed") return;
  const words = c.codes[event.code] ?? c.codes[1006];
  const isSame = words.toLowerCase().startsWith(event.reason.toLowerCase());
  end(isSame ? words : `${words} (${event.reason})`);
  dialog.value = null;
  const mine = turn;
  const problem = await look();
  if (!problem || event.code !== GUEST_ENDED || mine !== turn) return;
  const isAway = problem instanceof ApiError && problem.status === 503;
  end(`${isAway ? c.codes[NODE_AWAY] : words} (${problem.message})`);
}

/** Finds who has the console open. @returns {Promise<Error | null>} why that is not known */
async function look() {
  try {
    const found = await get(`${path}/consoles`);
    viewers.value = (found.open ?? []).filter((/** @type {any} */ item) => item.kind === kind);
    return null;
  } catch (error) {
    viewers.value = [];
    return /** @type {Error} */ (error);
  }
}

/** Hears when somebody opens or closes a console of the instance. */
function follow() {
  const events = new EventSource(`/2/events?${new URLSearchParams({ kind: "instance", object: name })}`);
  events.addEventListener("instance", (event) => JSON.parse(event.data).change === "console" && void look());
  events.addEventListener("start", () => void look());
  return () => events.close();
}

/** @param {"paste" | "password"} what @returns {Promise<string>} */
function ask(what) {
  dialog.value = what;
  return new Promise((done) => (answer = done));
}

/** Who controls, in words. */
function control() {
  const typist = viewers.value.find((item) => item.mode === "control");
  const isMine = state.value === "connected" && mode.value === "control";
  const others = viewers.value.filter((item) => item.mode === "view").length - (state.value === "connected" && mode.value === "view" ? 1 : 0);
  const look = state.value === "connected" && mode.value === "view";
  const first = isMine ? c.you : typist ? (look ? c.other : c.otherAway)(typist.user) : look ? `${c.nobody}. ${c.viewing}` : c.nobody;
  return others > 0 ? `${first}; ${c.more(others)}` : first;
}

function Dialog() {
  /** @type {{current: HTMLDialogElement | null}} */
  const box = useRef(null);
  const what = dialog.value;
  useEffect(() => {
    if (what && !box.current?.open) box.current?.showModal();
  }, [what]);
  if (!what) return null;
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const text = String(new FormData(event.target).get("text") ?? "");
    dialog.value = null;
    answer(text);
    screen?.focus();
  };
  const stop = () => (dialog.value = null);
  return html`<dialog ref=${box} aria-labelledby="dialog-title" onClose=${stop}><form onSubmit=${submit}>
    <h2 id="dialog-title">${what === "paste" ? c.pasteTitle : c.password}</h2>
    ${what === "paste"
      ? html`<p>${kind === "vnc" ? c.pasteKeys : c.pasteHelp}</p><textarea name="text" rows="8" aria-label=${c.pasteTitle} autofocus></textarea>`
      : html`<input name="text" type="password" autocomplete="off" aria-label=${c.password} autofocus />`}
    <div class="buttons"><button type="button" onClick=${stop}>${c.stop}</button><button class="primary">${what === "paste" ? c.typeIt : c.send}</button></div></form></dialog>`;
}

function ConsolePage() {
  /** @type {{current: any}} */
  const box = useRef(null);
  useEffect(() => {
    void connect(box.current, mode.value);
    const stop = follow();
    return () => {
      stop();
      screen?.dispose();
      screen = null;
    };
  }, []);
  const typing = state.value === "connected" && mode.value === "control";
  const open = (/** @type {string} */ wanted) => () => void connect(box.current, wanted);
  const paste = () => void ask("paste").then((text) => screen?.paste(text));
  return html`<main class="console"><header>
      <a class="brand" href=${`/ui/instances/${encodeURIComponent(name)}`} title=${c.back}><img src="/ui/icon.svg" alt=${c.back} width="20" height="20" /></a>
      <h1>${c.label(kind, name)}</h1>
      <span class=${`link ${state.value === "connected" ? "live" : state.value}`} role="status"><i aria-hidden="true"></i>${c[state.value]}</span>
      <span class="who">${control()}</span><span class="grow"></span>
      <span class="buttons">
        ${!typing && html`<button onClick=${open("control")}>${c.take}</button>`}
        ${!(state.value === "connected" && mode.value === "view") && html`<button onClick=${open("view")}>${c.view}</button>`}
        <button disabled=${!typing} onClick=${paste}>${c.paste}</button>
        ${kind === "vnc" && html`<button disabled=${!typing} onClick=${() => screen?.reset()}>${c.reset}</button>`}
        <button onClick=${open(mode.value)}>${c.reconnect}</button></span></header>
    ${state.value === "closed" && html`<p class="why" role="alert">${why.value}</p>`}
    <div class=${state.value === "closed" ? "screen ended" : "screen"}><div ref=${box}></div></div><${Dialog} /></main>`;
}

function App() {
  if (!isKnown) return html`<main class="page"><p class="problem">${c.wrongAddress}</p></main>`;
  if (session.value === undefined) return html`<p class="empty">${t.list.loading}</p>`;
  if (session.value === null) return html`<${LogIn} />`;
  return html`<${ConsolePage} />`;
}

document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "auto";
document.title = isKnown ? c.label(kind, name) : t.actions.console;
effect(() => {
  const test = /** @type {any} */ (window);
  test.ganeti = { read: () => screen?.read() ?? "", state: state.value };
});
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
void findSession();
