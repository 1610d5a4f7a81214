/** Places the "?" explanations beside their buttons. Opening and closing them is the browser's own popover. */

const GAP = 6;

function place(button, text) {
  const at = button.getBoundingClientRect();
  const left = Math.min(innerWidth - text.offsetWidth - 12, Math.max(12, at.left));
  const below = at.bottom + GAP + text.offsetHeight < innerHeight;
  text.style.left = `${left}px`;
  const top = below ? at.bottom + GAP : at.top - GAP - text.offsetHeight;
  text.style.top = `${Math.max(12, Math.min(top, innerHeight - text.offsetHeight - 12))}px`; // it lies on the screen in any case
}

/** Mounts placement for every popover on the page. */
export function mountHelp(root) {
  for (const button of root.querySelectorAll('[popovertarget]')) {
    const text = root.getElementById(button.getAttribute('popovertarget'));
    text.addEventListener('toggle', (event) => event.newState === 'open' && place(button, text));
  }
}
