/** Lays an element over a rectangle {x, y, width, height} of its parent, in CSS pixels; without one it is hidden. */
export function setBox(node, box) {
  node.hidden = !box;
  if (!box) return;
  node.style.transform = `translate(${box.x}px, ${box.y}px)`;
  node.style.width = `${box.width}px`;
  node.style.height = `${box.height}px`;
}

/** A rectangle made larger to whole pixels, so that an outline outside of it covers nothing inside. */
export function outward(box) {
  if (!box) return box;
  const [left, top] = [Math.floor(box.x), Math.floor(box.y)];
  return { x: left, y: top, width: Math.ceil(box.x + box.width) - left, height: Math.ceil(box.y + box.height) - top };
}
