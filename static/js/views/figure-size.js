/** The size of a figure in CSS pixels and how many of the screen's pixels each of them is. Knows nothing of what is drawn. */

const SMALLEST = 60; // px: a figure that is not laid out yet is smaller

/** Calls `tell({width, height, ratio})` now and whenever one of them changes: by layout, zoom of the page or another screen. */
export function followSize(figure, tell) {
  let seen = '';
  const look = () => {
    const size = { width: figure.clientWidth, height: figure.clientHeight, ratio: devicePixelRatio };
    const key = Object.values(size).join('|');
    if (key === seen || Math.min(size.width, size.height) < SMALLEST) return;
    seen = key;
    tell(size);
  };
  const followScreen = () => {
    look();
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', followScreen, { once: true });
  };
  followScreen();
  new ResizeObserver(look).observe(figure);
}
