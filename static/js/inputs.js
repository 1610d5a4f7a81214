/**
 * What the form holds for the chosen model, what a run was made of, and whether the two still agree. A model is given only
 * the fields that it takes. Pure; knows nothing of the page.
 */

import { chosenModel, finished } from './select.js';
import { pairOfTokens, targetOfTokens, textOfTokens } from './text.js';

export const takesPair = (model) => model?.takes_pair === true;
export const takesTarget = (model) => model?.kind === 'encoder-decoder';

/** The code that can run a model, the usual one first. */
export const implementationsOf = (model) => model?.implementations ?? [];

const unlessBlank = (text) => (text.trim() ? text : '');

/** The code that will run the chosen model: the one asked for where the model has it, else its usual one; null if unknown. */
export function implementationOf(state) {
  const known = implementationsOf(chosenModel(state));
  return known.includes(state.implementation) ? state.implementation : known[0] ?? null;
}

/** {text, pair, target} of the form; what the chosen model does not take, or what is blank, is ''. */
export function inputsOf(state) {
  const model = chosenModel(state);
  return {
    text: state.text,
    pair: takesPair(model) ? unlessBlank(state.pair) : '',
    target: takesTarget(model) ? unlessBlank(state.target) : '',
  };
}

/** {text, pair, target} of the run that is shown; '' where there was none, null where it is not known any more. */
export function inputsOfRun(state) {
  const { run } = state;
  return run.text === null ? inputsOfTokens(run.summary) : { text: run.text, pair: run.pair, target: run.target };
}

/** The same, put together from a summary's tokens. */
export function inputsOfTokens(summary) {
  return { text: textOfTokens(summary), pair: pairOfTokens(summary), target: targetOfTokens(summary) };
}

/** The body of a request for a run. */
export function requestOf(state, truncate) {
  const { text, pair, target } = inputsOf(state);
  const implementation = implementationOf(state);
  const usual = implementation === (implementationsOf(chosenModel(state))[0] ?? null);
  return {
    model: state.modelId, text, truncate, add_special_tokens: state.addSpecial,
    ...(pair ? { text_pair: pair } : {}), ...(target ? { target_text: target } : {}), ...(usual ? {} : { implementation }),
  };
}

/** What of the form is no longer what the shown picture was made of: 'text', 'model', 'options'; null when all is. */
export function changedSince(state) {
  const summary = finished(state);
  if (!summary || state.modelId === null || (state.run.text === null && !state.text)) return null;
  const now = inputsOf(state);
  const then = inputsOfRun(state);
  const differs = (name) => then[name] !== null && then[name] !== now[name];
  if (differs('text')) return 'text';
  if (summary.model.id !== state.modelId) return 'model';
  if (differs('pair') || differs('target')) return 'text';
  const other = implementationsOf(chosenModel(state)).length > 1 && summary.model.implementation !== implementationOf(state);
  return other || summary.options.add_special_tokens !== state.addSpecial ? 'options' : null;
}
