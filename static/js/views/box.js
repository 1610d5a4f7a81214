/** Lays an element over a rectangle {x, y, width, height} of its parent, in CSS pixels; without one it is hidden. */
export function setBox(node, box) {
  node.hidden = !box;
  if (!box) return;
  node.style.transform = `translate(${box.x}px, ${box.y}px)`;
  node.style.width = `${box.width}px`;
  node.style.height = `${box.height}px`;
}
