/** Plotly, loaded when first wanted. No other module names its global. It is served by this server and sends nothing anywhere. */

const CONFIG = Object.freeze({
  displayModeBar: false,
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: '',
  doubleClick: false,
  showTips: false,
  scrollZoom: false,
  responsive: false,
});

let loading = null;

/** A promise of Plotly; rejects when the file can't be had, and a later call tries again. */
export function loadPlotly(url) {
  loading ??= new Promise((resolve, reject) => {
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
