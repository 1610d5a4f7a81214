/** A choice among a few values as one row of buttons. Keeps aria-pressed true to the state. */

/** Follows `value(state)` over changes of `keys`; calls `choose` with the value of a pressed button. */
export function mountSegments(group, store, value, choose, keys = ['view']) {
  const buttons = [...group.querySelectorAll('button')];
  group.addEventListener('click', ({ target }) => target.dataset.value && choose(target.dataset.value));
  store.subscribe(keys, (state) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.value === value(state)));
  });
}
