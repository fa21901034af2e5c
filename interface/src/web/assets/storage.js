// JSON in localStorage. A browser that refuses storage (private mode, quota) costs the safety of a reload,
// never the use of the page, so failures fall back to this tab's memory.

const fallback = new Map();

export function read(key, otherwise) {
  try {
    const stored = localStorage.getItem(key);
    return stored === null ? otherwise : JSON.parse(stored);
  } catch {
    return fallback.has(key) ? fallback.get(key) : otherwise;
  }
}

export function write(key, value) {
  fallback.set(key, value);
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Kept in `fallback` above.
  }
}

export function remove(key) {
  fallback.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // Nothing is stored where storage is refused.
  }
}

/** Removes everything whose key begins with one of `prefixes`. */
export function removeAll(prefixes) {
  const has = (key) => prefixes.some((prefix) => key.startsWith(prefix));
  for (const key of [...fallback.keys()].filter(has)) fallback.delete(key);
  try {
    for (const key of Object.keys(localStorage).filter(has)) localStorage.removeItem(key);
  } catch {
    // Nothing is stored where storage is refused.
  }
}
