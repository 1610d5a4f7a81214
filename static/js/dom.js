/** Small helpers to make elements. Text always becomes text nodes; there is no way here to make markup of a string. */

/** An element with properties, `data-`/`aria-` attributes and children (strings become text nodes, null is left out). */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') node.className = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Replaces everything in `parent`. */
export const fill = (parent, ...children) =>
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));

/**
 * The same, and the focus stays on the control with the same `data-key`, so that what a key press changed can be pressed on.
 * False where there is no such control any more: the caller knows where to go instead.
 */
export function refill(parent, ...children) {
  const focused = parent.ownerDocument.activeElement;
  const key = parent.contains(focused) ? focused.dataset.key : undefined;
  fill(parent, ...children);
  if (key === undefined) return true;
  const again = [...parent.querySelectorAll('[data-key]')].find((node) => node.dataset.key === key);
  again?.focus({ preventScroll: true });
  return again !== undefined;
}

/**
 * Has `parent` hold just these, in this order. Those that are there already and in order are not touched: what the pointer is
 * pressed on must stay in its place until it is let go, or there is no click.
 */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, at) => {
    if (parent.childNodes[at] !== node) parent.insertBefore(node, parent.childNodes[at] ?? null);
  });
}

/** The one element in `root` with this `data-ref`. */
export function ref(root, name) {
  const node = root.querySelector(`[data-ref="${name}"]`);
  if (!node) throw new Error(`the template has no data-ref="${name}"`);
  return node;
}

/** Whether there is only touch here: hints then say tap, not point. */
export const byTouch = () => matchMedia('(hover: none)').matches;

/** Runs `work` at most once per frame, with the last arguments given. */
export function perFrame(work) {
  let wanted = null;
  return (...args) => {
    if (!wanted) requestAnimationFrame(() => {
      const latest = wanted;
      wanted = null;
      work(...latest);
    });
    wanted = args;
  };
}

/** Runs `work` once calls have paused for `wait` ms; `.cancel()` forgets a call that waits. */
export function debounce(work, wait) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** A token of the user's text as an element: isolated, so that right-to-left text does not turn its neighbours. */
export function tokenLabel(parts) {
  return el('bdi', { class: 'token-label' }, parts.map((part) => (part.quiet ? el('span', { class: 'quiet' }, part.text) : part.text)));
}
