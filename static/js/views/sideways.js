/** Tells the style sheet on which sides a box has more than it shows, so that it can shade those edges. */

const SLACK = 2; // px that rounding may leave

/** `data-more` of the box: 'left', 'right', both or none. */
export function showHidden(box) {
  const left = box.scrollLeft > SLACK;
  const right = box.scrollLeft + box.clientWidth < box.scrollWidth - SLACK;
  box.dataset.more = [left && 'left', right && 'right'].filter(Boolean).join(' ');
}
