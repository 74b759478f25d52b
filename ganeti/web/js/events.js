// Reading of the event stream, which also tells whether the server is there.
import { send, trouble } from "./api.js";
import { Frames } from "./model/stream.js";

/** Milliseconds without even a heartbeat, of which one comes every 5 seconds, until the connection counts as lost. */
const SILENCE = 12_000;

/**
 * Reads events until the stream ends. Throws when the server cannot be reached, says nothing, or refuses.
 * @param {{query?: [string, string][], last?: string, over?: AbortSignal}} from which events, those after which one, and until when
 * @param {(found: import("./model/stream.js").Frame[]) => void} take
 */
export async function readEvents({ query = [], last = "", over }, take) {
  const stop = new AbortController();
  const hangUp = () => stop.abort();
  let silence = window.setTimeout(hangUp, SILENCE);
  window.addEventListener("offline", hangUp);
  over?.addEventListener("abort", hangUp);
  trouble.tell = hangUp;
  try {
    const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
    const response = await send("GET", "/2/events", { query, headers, signal: stop.signal });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    const frames = new Frames();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = window.setTimeout(hangUp, SILENCE);
      const found = frames.add(decoder.decode(value, { stream: true }));
      if (found.length) take(found);
    }
  } finally {
    clearTimeout(silence);
    window.removeEventListener("offline", hangUp);
    over?.removeEventListener("abort", hangUp);
    trouble.tell = () => {};
  }
}
