/** Previews the head under the pointer. Emits preview. */

import { perFrame } from '../dom.js';

/**
 * `preview(head)` shows a head, or none, at most once per frame; `isNow()` is true while that changes the state: what is
 * pointed at is in sight, so a view need not bring it there.
 */
export function pointingAt(store) {
  let now = false;
  const preview = perFrame((head) => {
    now = true;
    store.emit('preview', head);
    now = false;
  });
  return { preview, isNow: () => now };
}
