// Sessions of users of this interface: who is in, and an end to it.
import { maybe, send, session } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { moment } from "../model/format.js";
import { healed } from "../store.js";
import { t } from "../text.js";
import { Table } from "./parts.js";

const s = t.sessions;

export function SessionsPage() {
  const [found, setFound] = useState(/** @type {any[] | null | undefined} */ (undefined));
  const [problem, setProblem] = useState("");
  const load = () => maybe("/2/sessions").then(setFound, (error) => setProblem(error.message));
  useEffect(() => void load(), [healed.value]);
  const revoke = (/** @type {string} */ id) => send("DELETE", `/2/sessions/${encodeURIComponent(id)}`).then(load, (error) => setProblem(error.message));
  const mine = (/** @type {any} */ item) => item.id === session.value?.id;
  const ordered = [...(Array.isArray(found) ? found : [])].sort((a, b) => Number(mine(b)) - Number(mine(a)) || b.created - a.created);
  const rows = ordered.map((item) => [
    item.user, moment(item.created ?? item.begun ?? item.since), moment(item.expires), item.address ?? "–",
    mine(item) ? s.current : html`<button class="danger" onClick=${() => revoke(item.id)}>${s.revoke}</button>`,
  ]);
  return html`<section class="page"><header class="page-head"><h1>${s.title}</h1></header>${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="panels"><section class="panel wide"><${Table} empty=${found === undefined ? t.list.loading : s.none} head=${[t.fields.user, s.begun, s.expires, s.address, ""]} rows=${rows} /></section></div></section>`;
}
