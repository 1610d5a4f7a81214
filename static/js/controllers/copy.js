/** Puts a link on the clipboard and says so; where the browser refuses, the notice holds the link to copy by hand. */

/** `path` is the page's own with its fragment; `told` the notice once it is copied. */
export async function copyLink(store, path, told = 'link.copied') {
  const link = `${location.origin}${path}`;
  try {
    await navigator.clipboard.writeText(link);
    store.set({ notice: { key: told } });
  } catch {
    store.set({ notice: { key: 'link.blocked', link } });
  }
}
