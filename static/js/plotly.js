/** Plotly, loaded when first wanted. No other module names its global. It is served by this server and sends nothing anywhere. */

const CONFIG = Object.freeze({
  displayModeBar: false,
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: '',
  staticPlot: true, // pointing and zooming are the page's own
});

// The bundle's map library adds an inline style sheet, which the content-security policy refuses and no heat map needs,
// unless an element with this id is there already. The id belongs to the pinned version: a browser test sees it change.
const MAP_SHEET_ID = '9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53';

let loading = null;

function standInForMapSheet() {
  const placeholder = document.createElement('meta');
  placeholder.id = MAP_SHEET_ID;
  document.head.append(placeholder);
}

/** A promise of Plotly; rejects when the file can't be had, and a later call tries again. */
export function loadPlotly(url) {
  loading ??= new Promise((resolve, reject) => {
    standInForMapSheet();
    const script = document.createElement('script');
    script.src = url;
    script.addEventListener('load', () => resolve(globalThis.Plotly));
    script.addEventListener('error', () => {
      script.remove();
      loading = null;
      reject(new Error('Plotly could not be loaded'));
    });
    document.head.append(script);
  });
  return loading;
}

/** Draws or redraws a figure in place, with the settings that every figure here has. */
export const draw = (plotly, element, data, layout) => plotly.react(element, data, layout, CONFIG);
