/** A choice among a few values as one row of buttons. Keeps aria-pressed true to the state. */

/** Follows `value(state)`; calls `choose` with the value of a pressed button. */
export function mountSegments(group, store, value, choose) {
  const buttons = [...group.querySelectorAll('button')];
  group.addEventListener('click', ({ target }) => target.dataset.value && choose(target.dataset.value));
  store.subscribe(['view'], (state) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.value === value(state)));
  });
}
