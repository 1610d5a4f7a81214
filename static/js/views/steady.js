/** Keeps a figure as high as it is while what lies under it in the same column is unfolded: the column scrolls instead. */

/** Follows the `details` of `section`; heights are shares of its own, so that they follow the window. */
export function keepHeight(figure, section) {
  const folds = [...section.querySelectorAll('details')];
  section.addEventListener('click', ({ target }) => {
    const own = target.closest('summary')?.parentElement;
    if (!folds.includes(own) || folds.some(({ open }) => open)) return;
    const { paddingTop, paddingBottom } = getComputedStyle(section);
    const room = section.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom);
    figure.style.minHeight = `${(figure.offsetHeight / room) * 100}%`; // before it opens
  });
  for (const fold of folds) {
    fold.addEventListener('toggle', () => {
      if (!folds.some(({ open }) => open)) figure.style.minHeight = '';
    });
  }
}
