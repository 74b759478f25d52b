// The screen of a guest by noVNC. Clipboard, title and bell of the guest are ignored.
import RFB from "../../vendor/novnc/core/rfb.js";

const SHIFT = 0xffe1, ENTER = 0xff0d, TAB = 0xff09;
/** Letters that need the shift key of a US keyboard. */
const SHIFTED = /[A-Z~!@#$%^&*()_+{}|:"<>?]/;
/** Milliseconds from key to key: keyboards of guests keep few. */
const PAUSE = 12;

/** The number by which X knows a letter. @param {string} letter */
function keyOf(letter) {
  const code = /** @type {number} */ (letter.codePointAt(0));
  if (letter === "\n") return ENTER;
  if (letter === "\t") return TAB;
  return code < 0x100 ? code : 0x1000000 + code;
}

/**
 * @param {HTMLElement} box @param {WebSocket} socket
 * @param {{mayType: boolean, label: string, opened: () => void, askPassword: () => Promise<string>, refused: (text: string) => void}} options
 */
export function attach(box, socket, { mayType, label, opened, askPassword, refused }) {
  const screen = new RFB(box, socket, { shared: true });
  screen.viewOnly = !mayType;
  screen.scaleViewport = true;
  screen.background = "transparent";
  screen.showDotCursor = mayType;
  const canvas = box.querySelector("canvas");
  canvas?.setAttribute("aria-label", label);
  canvas?.setAttribute("role", "img");
  screen.addEventListener("connect", opened);
  screen.addEventListener("credentialsrequired", async () => screen.sendCredentials({ password: await askPassword() }));
  screen.addEventListener("securityfailure", (/** @type {any} */ event) => refused(String(event.detail.reason ?? event.detail.status)));
  let ended = false;

  return {
    focus: () => screen.focus(),
    /** @param {string} text */
    async paste(text) {
      for (const letter of text.replace(/\r\n?/g, "\n")) {
        if (ended) return;
        const shifted = SHIFTED.test(letter);
        if (shifted) screen.sendKey(SHIFT, "ShiftLeft", true);
        screen.sendKey(keyOf(letter), null);
        if (shifted) screen.sendKey(SHIFT, "ShiftLeft", false);
        await new Promise((done) => setTimeout(done, PAUSE));
      }
    },
    reset: () => screen.sendCtrlAltDel(),
    read: () => "",
    dispose() {
      ended = true;
      screen.disconnect();
      box.replaceChildren();
    },
  };
}
