/** The page's own colours as scripts need them. Reads the style sheet's custom properties; owns none itself. */

const channels = (text) => (text.match(/\d+(\.\d+)?/g) ?? [0, 0, 0]).slice(0, 3).map(Number);

/** Colours and font of the present scheme. */
export function readInk() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    strong: value('--ink'), quiet: value('--ink-2'), faint: value('--ink-3'), paper: value('--paper'), panel: value('--panel'), line: value('--line'), bar: value('--bar'),
    hatch: channels(value('--hatch-rgb')), ground: channels(value('--hatch-ground-rgb')),
    font: getComputedStyle(document.body).fontFamily,
  };
}
