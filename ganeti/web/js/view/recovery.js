// What the cluster does about dead nodes, and what would happen if one died now.
import { call, maybe, resultOf } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { CONTINUE_RECOVERY, PAUSE_RECOVERY, PLAN_RECOVERY } from "../kinds.js";
import { duration, moment } from "../model/format.js";
import { url } from "../router.js";
import { cluster, healed, health } from "../store.js";
import { t } from "../text.js";
import { ClusterActions, isOffered } from "./actions.js";
import { Ref, Status, Table } from "./parts.js";

const r = t.recovery;
/** How a state of an instance of a dead node is drawn. */
const LEVELS = { recovered: "ok", starting: "running", waiting: "warning", failed: "error", left: "warning" };

/** @param {number | null} seconds */
const after = (seconds) => (seconds ? r.after(duration(seconds)) : r.never);

export function RecoveryPage() {
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const [problem, setProblem] = useState("");
  const load = () => maybe("/2/recovery").then((answer) => (setFound(answer), setProblem("")), (error) => setProblem(error.message));
  useEffect(() => void load(), [health.value, healed.value, cluster.value]);
  const actions = found?.paused_until ? [CONTINUE_RECOVERY, PAUSE_RECOVERY] : [PAUSE_RECOVERY];
  return html`<section class="page"><header class="page-head"><h1>${r.title}</h1><span class="grow"></span><${ClusterActions} name=${cluster.value?.name} actions=${actions} /></header>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${found ? html`<${Account} found=${found} />` : !problem && html`<p class="empty">${found === null ? t.form.rights : t.list.loading}</p>`}</section>`;
}

/** @param {{found: any}} props the answer of the API */
function Account({ found }) {
  const facts = [
    [r.fence, after(found.fence_after)],
    [r.failover, after(found.failover_after)],
    [r.paused, found.paused_until && moment(found.paused_until)],
    [t.overview.watcherPaused, found.watcher_paused_until && moment(found.watcher_paused_until)],
  ].filter(([, value]) => value);
  return html`<div class="panels">
    <section class="panel wide"><h2>${r.settings}</h2><dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>
    <section class="panel wide"><h2>${t.kinds.nodes}</h2><${Table} empty=${t.list.none} head=${[t.fields.node, r.silence, r.lease, r.proofs, r.next]}
      rows=${found.nodes.map((/** @type {any} */ node) => [html`<${Ref} kind="node" name=${node.node} />`, seconds(node.silence), seconds(node.lease_left), node.proofs.join(", ") || "–", node.fenced && !node.fenced.over ? `${node.next}: ${node.fenced.proof}` : node.next])} /></section>
    <section class="panel wide"><h2>${r.instances}</h2><${Table} empty=${r.none} head=${[t.fields.instance, t.fields.status, r.from, t.fields.node, r.attempts, t.kinds.job, r.why]}
      rows=${found.instances.map((/** @type {any} */ one) => [
        html`<${Ref} kind="instance" name=${one.instance} />`, html`<${Status} value=${LEVELS[/** @type {keyof typeof LEVELS} */ (one.state)]} text=${one.state} />`,
        html`<${Ref} kind="node" name=${one.source} />`, html`<${Ref} kind="node" name=${one.node} />`, one.attempts,
        one.job ? html`<a href=${url("jobs", String(one.job))}>${one.job}</a>` : "–", one.reason || "–",
      ])} /></section></div>`;
}

/** @param {number | null} value */
const seconds = (value) => (value === null ? "–" : `${Math.round(value)} s`);

/** What would happen if a node died now; asked for by a button, as it is a job. @param {{row: Record<string, any>}} props */
export function IfItDied({ row }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [state, setState] = useState({ busy: false, problem: "" });
  if (row.offline || !isOffered(PLAN_RECOVERY)) return null;
  const ask = async () => {
    setState({ busy: true, problem: "" });
    try {
      const id = await call("PUT", "/2/recovery/plan", { body: { node_name: row.name } });
      setPlan(await resultOf(id));
      setState({ busy: false, problem: "" });
    } catch (error) {
      setState({ busy: false, problem: /** @type {Error} */ (error).message });
    }
  };
  return html`<section class="panel"><h2>${r.ifItDied} <span class="tabs"><button disabled=${state.busy} onClick=${ask}>${state.busy ? t.form.working : r.ask}</button></span></h2>
    <div aria-live="polite">${state.problem && html`<p class="problem">${state.problem}</p>`}${plan ? html`<${Outcome} plan=${plan} />` : html`<p class="empty">${r.hint}</p>`}</div></section>`;
}

/** @param {{plan: any}} props */
function Outcome({ plan }) {
  const isProven = plan.moments.at(-1)?.proves;
  const named = (/** @type {any} */ one, /** @type {any} */ text) => html`<li key=${one.instance}><${Ref} kind="instance" name=${one.instance} /> ${text}</li>`;
  const part = (/** @type {string} */ title, /** @type {any[]} */ rows) => rows.length > 0 && html`<p>${title}</p><ul class="plain">${rows}</ul>`;
  return html`<ol class="moments">${plan.moments.map((/** @type {any} */ one) => html`<li key=${one.text}><b>${r.after(`${Math.round(one.after)} s`)}</b> ${one.text}</li>`)}</ol>
    ${plan.paused_until && html`<p>${r.notBefore(moment(plan.paused_until))}</p>`}
    ${part(isProven ? r.starts : r.startsConfirmed, plan.starts.map((/** @type {any} */ one) => named(one, one.node ? html`→ <${Ref} kind="node" name=${one.node} />` : r.chosen)))}
    ${!plan.starts.length && html`<p>${r.noStarts}</p>`}
    ${part(r.waits, plan.waits.map((/** @type {any} */ one) => named(one, one.reason)))}
    ${part(r.stays, plan.left.map((/** @type {any} */ one) => named(one, one.reason)))}`;
}
