// A serial console in xterm. What the guest prints is drawn and does nothing else on this page.
import { Terminal } from "../../vendor/xterm.mjs";

/** Lines and columns that a guest expects of a serial line that tells no size. */
const COLUMNS = 80, ROWS = 24;
/** Commands that repeat something as often as they say: letters, lines, tab stops. */
const REPEATING = ["b", "L", "M", "S", "T", "I", "Z"];
const encoder = new TextEncoder();

/** Pixels of the letters with which all columns and rows fit. @param {HTMLElement} box */
function sizeOf(box) {
  const fitting = Math.min(box.clientWidth / (COLUMNS * 0.61), box.clientHeight / (ROWS * 1.25));
  return Math.max(9, Math.min(20, Math.floor(fitting)));
}

/**
 * @param {HTMLElement} box @param {WebSocket} socket
 * @param {{mayType: boolean, label: string, opened: () => void}} options
 */
export function attach(box, socket, { mayType, label, opened }) {
  socket.binaryType = "arraybuffer";
  const terminal = new Terminal({
    cols: COLUMNS, rows: ROWS, scrollback: 5000, fontSize: sizeOf(box), disableStdin: !mayType, cursorBlink: mayType,
    fontFamily: '"DejaVu Sans Mono", Menlo, Consolas, monospace', theme: { background: "#0b0e12", foreground: "#dbe2ea" },
    logLevel: "off", linkHandler: { activate: () => undefined },
  });
  // More often than the screen has letters changes nothing more, but may take all memory or time.
  for (const final of REPEATING) {
    terminal.parser.registerCsiHandler({ final }, (/** @type {(number | number[])[]} */ [times]) => Number(times) > COLUMNS * ROWS);
  }
  terminal.open(box);
  terminal.textarea?.setAttribute("aria-label", label);

  // A terminal answers questions of the guest. Old ones, shown again at first, must not be answered:
  // the answers would be typed into whatever runs now.
  let hasTyped = false;
  const note = () => (hasTyped = true);
  const gestures = ["keydown", "paste", "compositionstart", "input", "mousedown", "wheel"];
  for (const name of gestures) box.addEventListener(name, note, true);
  /** @param {Uint8Array<ArrayBuffer>} bytes */
  const send = (bytes) => {
    if (mayType && hasTyped && socket.readyState === WebSocket.OPEN) socket.send(bytes);
  };
  terminal.onData((/** @type {string} */ text) => send(encoder.encode(text)));
  terminal.onBinary((/** @type {string} */ text) => send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
  socket.addEventListener("open", opened);
  socket.addEventListener("message", (event) => terminal.write(new Uint8Array(event.data)));
  const fit = () => (terminal.options.fontSize = sizeOf(box));
  window.addEventListener("resize", fit);

  return {
    focus: () => terminal.focus(),
    /** @param {string} text */
    paste(text) {
      note();
      terminal.paste(text);
    },
    reset: () => undefined,
    /** What is shown, for tests. */
    read() {
      const { active } = terminal.buffer;
      let text = "";
      for (let index = 0; index < active.length; index += 1) {
        const line = active.getLine(index);
        text += (line?.isWrapped ? "" : "\n") + (line?.translateToString(true) ?? "");
      }
      return text;
    },
    dispose() {
      window.removeEventListener("resize", fit);
      for (const name of gestures) box.removeEventListener(name, note, true);
      terminal.dispose();
    },
  };
}
