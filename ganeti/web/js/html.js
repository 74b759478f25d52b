// The one door to the third-party modules that draw.
import htm from "../vendor/htm.js";
import { h, render } from "../vendor/preact.js";

/** @type {(texts: TemplateStringsArray, ...values: any[]) => any} */
export const html = /** @type {any} */ (htm).bind(h);
export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";
