// The one door to the third-party modules that draw.
import htm from "../vendor/htm.js";
import { h, render } from "../vendor/preact.js";

export const html = htm.bind(h);
export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";
