// The log-in, and the same over a page whose session has ended.
import { expired, get, logIn, takeOver } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { resume } from "../store.js";
import { t } from "../text.js";

/** Why a log-in by an identity provider did not work. */
const returned = () => {
  const word = new URLSearchParams(location.search).get("login") ?? "";
  return Object.hasOwn(t.login.returned, word) ? t.login.returned[/** @type {keyof typeof t.login.returned} */ (word)] : "";
};

/** @param {{again?: boolean, why?: string}} props */
export function LogIn({ again = false, why = "" }) {
  const [byToken, setByToken] = useState(false);
  const [problem, setProblem] = useState(returned);
  const [busy, setBusy] = useState(false);
  const [methods, setMethods] = useState(/** @type {any[]} */ ([]));
  useEffect(() => void get("/2/login-methods").then(setMethods, () => undefined), []);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const word = (/** @type {string} */ name) => String(form.get(name) ?? "");
    setBusy(true);
    try {
      await logIn(byToken ? { token: word("token") } : { user: word("user"), password: word("password") });
      if (again) resume();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
    setBusy(false);
  };
  const others = methods.filter((/** @type {any} */ method) => method.url && String(method.url).startsWith("/2/"));
  return html`<div class=${again ? "login over" : "login"} role=${again ? "dialog" : "main"} aria-modal=${again ? "true" : undefined} aria-labelledby="login-title">
    <form onSubmit=${submit}>
      <div class="brand"><img src="/ui/icon.svg" alt="" width="28" height="28" /> ${t.product}</div>
      <h1 id="login-title">${t.login.title}</h1>
      ${why && html`<p>${why}</p>`}
      ${byToken
        ? html`<label for="token">${t.login.token}</label><input id="token" name="token" type="password" autocomplete="off" required />`
        : html`<label for="user">${t.login.user}</label><input id="user" name="user" autocomplete="username" required autofocus />
          <label for="password">${t.login.password}</label><input id="password" name="password" type="password" autocomplete="current-password" required />`}
      <p class="problem" role="alert">${problem}</p>
      <button class="primary" disabled=${busy}>${t.login.submit}</button>
      <button type="button" class="quiet" onClick=${() => setByToken(!byToken)}>${byToken ? t.login.usePassword : t.login.useToken}</button>
      ${others.map((/** @type {any} */ method) => html`<a class="button" key=${method.url} href=${method.url} target=${again ? "_blank" : "_top"}>${t.login.with(method.title ?? method.name)}</a>`)}
    </form></div>`;
}

/** Takes the session of a log-in in another window, in place of one that ended. @param {() => void} [taken] */
export function useOtherLogIn(taken = () => undefined) {
  useEffect(() => {
    const look = async () => expired.value && (await takeOver()) && taken();
    for (const name of ["focus", "storage"]) window.addEventListener(name, look);
    return () => ["focus", "storage"].forEach((name) => window.removeEventListener(name, look));
  }, []);
}

export function SessionGuard() {
  useOtherLogIn(resume);
  return expired.value ? html`<div class="veil dark"></div><${LogIn} again=${true} why=${t.login.expired} />` : null;
}
