// The page of one console: asks for a ticket, connects, says who controls and why it ended.
// When the server is lost, it opens the console again as soon as it can.
import { ApiError, call, expired, findSession, get, session } from "../api.js";
import { readEvents } from "../events.js";
import { effect, html, render, signal, useEffect, useRef } from "../html.js";
import { pause } from "../model/stream.js";
import { t } from "../text.js";
import { LogIn, useOtherLogIn } from "../view/login.js";

const c = t.console;
const query = new URLSearchParams(location.search);
const name = query.get("instance") ?? "";
const kind = query.get("kind") ?? "serial";
const isKnown = name !== "" && (kind === "vnc" || kind === "serial");
const path = /** @type {const} */ (`/2/instances/${encodeURIComponent(name)}`);

/** Type in it, or only look. */
const mode = signal(query.get("mode") === "view" ? "view" : "control");
/** Lost is what opens again by itself; closed is what does not. @type {{value: "connecting" | "connected" | "lost" | "closed"}} */
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
/** @type {WebSocket | null} */
let socket = null;
/** Codes of a console whose server stops or is lost, and of a ticket that was not accepted. */
const SERVER_STOPS = 1001, SERVER_LOST = 1006, BAD_TICKET = 4001;
/** Code of a console that ended with its guest, went with it to another node, or was lost behind the server. */
const GUEST_ENDED = 4004;
/** Answers that say "not now" of a console that was there a moment ago. */
const PASSING = [429, 502, 503, 504];
/** Counts connections: what an earlier one still has to say is not heard. */
let turn = 0;
/** Tries since the console was last there for some time, and how often it may end at once while its guest runs. */
let tries = 0;
const MOST_TRIES = 8;
/** Milliseconds that are some time, and when the console was opened. */
const STEADY = 10_000;
let since = Infinity;
/** Where the console is shown. @type {HTMLElement} */
let box;

const load = () => (kind === "vnc" ? import("./vnc.js") : import("./serial.js"));

/** @param {string} text */
function end(text) {
  state.value = "closed";
  why.value = text;
  dialog.value = null;
}

/** Shows that the console is lost, and tries to open it again. @param {string} text why */
function lose(text) {
  if (Date.now() - since > STEADY) tries = 0;
  since = Infinity;
  state.value = "lost";
  why.value = text;
  if (dialog.value === "password") dialog.value = null;
  socket?.close();
  const mine = ++turn;
  window.setTimeout(() => mine === turn && openAgain(), pause(tries) * 1000);
  tries += 1;
}

/** Opens the console in place of what was there. @param {string} wanted control or view */
async function open(wanted) {
  tries = 0;
  state.value = "connecting";
  why.value = "";
  const mine = ++turn;
  try {
    await connect(mine, wanted);
  } catch (error) {
    if (mine !== turn) return;
    if (error instanceof TypeError) lose(error.message);
    else refuse(error);
  }
}

/** Tries to open a console that was lost, in the same way, but takes it from nobody else. */
async function openAgain() {
  const mine = ++turn;
  try {
    await look();
    const isTaken = viewers.value.some((item) => item.mode === "control" && item.user !== session.value?.user);
    if (mine === turn) await connect(mine, isTaken ? "view" : mode.value);
  } catch (error) {
    if (mine !== turn) return;
    if (!(error instanceof ApiError)) lose(why.value);
    else if (PASSING.includes(error.status)) lose(error.message);
    else refuse(error);
  }
}

/** @param {unknown} error */
function refuse(error) {
  end(/** @type {Error} */ (error).message);
  if (error instanceof ApiError && error.status === 401) session.value = null;
}

/** Asks for a ticket and connects with it. @param {number} mine @param {string} wanted */
async function connect(mine, wanted) {
  mode.value = wanted;
  history.replaceState(null, "", `?${new URLSearchParams({ instance: name, kind, mode: wanted })}`);
  const { attach } = await load();
  const made = await call("POST", `${path}/console-ticket`, { body: { kind, mode: wanted } });
  if (mine !== turn) return;
  const address = new URL(made.url, location.href);
  address.protocol = "wss:";
  disconnect();
  socket = new WebSocket(address, "binary");
  socket.addEventListener("close", (event) => mine === turn && closed(event));
  screen = attach(box, socket, {
    mayType: wanted === "control",
    label: c.label(kind, name),
    opened: () => mine === turn && opened(),
    askPassword: () => ask("password"),
    refused: (/** @type {string} */ text) => mine === turn && end(c.refused(text)),
  });
}

function disconnect() {
  screen?.dispose();
  socket?.close();
  screen = socket = null;
}

function opened() {
  state.value = "connected";
  why.value = "";
  since = Date.now();
  screen?.focus();
  void look();
}

/** @param {CloseEvent} event */
async function closed(event) {
  if (state.value === "closed") return;
  const words = c.codes[event.code] ?? c.codes[SERVER_LOST];
  const isSame = words.toLowerCase().startsWith(event.reason.toLowerCase());
  const text = isSame ? words : `${words} (${event.reason})`;
  if (event.code === SERVER_STOPS || event.code === SERVER_LOST) {
    lose(text);
    return;
  }
  end(text);
  const mine = turn;
  const problem = await look();
  if (mine !== turn) return;
  if (event.code === BAD_TICKET && !(problem instanceof ApiError)) lose(text); // of the server before this one
  if (event.code !== GUEST_ENDED) return;
  if (!problem && tries < MOST_TRIES) lose(text); // it has moved
  else if (problem instanceof ApiError && PASSING.includes(problem.status)) lose(problem.message);
  else if (problem) end(`${words} (${problem.message})`);
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

/**
 * Hears when somebody opens or closes a console of the instance. With a server that is not heard any more,
 * the console is lost, too, though its connection may not have ended.
 * @param {AbortSignal} over
 */
async function follow(over) {
  for (let silent = 0; !over.aborted; silent += 1) {
    try {
      await readEvents({ query: [["kind", "instance"], ["object", name]], over }, (found) => {
        silent = 0;
        const isNews = (/** @type {any} */ frame) => frame.event === "start" || (frame.event === "instance" && JSON.parse(frame.data).change === "console");
        if (found.some(isNews)) void look();
      });
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return;
      if (!over.aborted && !(error instanceof ApiError) && state.value === "connected") lose(c.codes[SERVER_LOST]);
    }
    await new Promise((done) => setTimeout(done, pause(silent) * 1000));
  }
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
    <div class="buttons"><button type="button" onClick=${stop}>${c.stop}</button><button class="primary" disabled=${state.value === "lost"}>${what === "paste" ? c.typeIt : c.send}</button></div></form></dialog>`;
}

function ConsolePage() {
  /** @type {{current: any}} */
  const place = useRef(null);
  useEffect(() => {
    box = place.current;
    void open(mode.value);
    const over = new AbortController();
    void follow(over.signal);
    return () => {
      over.abort();
      turn += 1;
      disconnect();
    };
  }, []);
  const typing = state.value === "connected" && mode.value === "control";
  const isOver = state.value === "lost" || state.value === "closed";
  const paste = () => void ask("paste").then((text) => screen?.paste(text));
  return html`<main class="console"><header>
      <a class="brand" href=${`/ui/instances/${encodeURIComponent(name)}`} title=${c.back}><img src="/ui/icon.svg" alt=${c.back} width="20" height="20" /></a>
      <h1>${c.label(kind, name)}</h1>
      <span class=${`link ${state.value === "connected" ? "live" : state.value}`} role="status"><i aria-hidden="true"></i>${c[state.value]}</span>
      <span class="who">${control()}</span><span class="grow"></span>
      <span class="buttons">
        ${!typing && html`<button onClick=${() => void open("control")}>${c.take}</button>`}
        ${!(state.value === "connected" && mode.value === "view") && html`<button onClick=${() => void open("view")}>${c.view}</button>`}
        <button disabled=${!typing} onClick=${paste}>${c.paste}</button>
        ${kind === "vnc" && html`<button disabled=${!typing} onClick=${() => screen?.reset()}>${c.reset}</button>`}
        <button onClick=${() => void open(mode.value)}>${c.reconnect}</button></span></header>
    ${isOver && html`<p class="why" role="alert">${why.value}</p>`}
    <div class=${isOver ? "screen ended" : "screen"}><div ref=${place}></div></div><${Dialog} /></main>`;
}

function App() {
  useOtherLogIn();
  if (!isKnown) return html`<main class="page"><p class="problem">${c.wrongAddress}</p></main>`;
  if (session.value === undefined) return html`<p class="empty">${t.list.loading}</p>`;
  if (session.value === null) return html`<${LogIn} why=${expired.value ? c.expired : ""} />`;
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
