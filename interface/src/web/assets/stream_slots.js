// How many answers the tabs of one browser follow live at the same time. Over HTTP/1.1 a browser opens six connections to a host;
// streams that held all of them would keep every other request of every tab waiting.

const SLOTS = 4;
const NAME = 'tidemark.stream.';

/** HTTP/2 and later carry any number of streams in one connection. */
const isMultiplexed = () => /^h[23]/.test(performance.getEntriesByType('navigation')[0]?.nextHopProtocol ?? '');

/** A function that gives the slot back, or null while other tabs have them all. Where tabs cannot agree, everybody has one. */
export async function takeSlot() {
  if (!navigator.locks || isMultiplexed()) return () => {};
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const release = await take(NAME + slot);
    if (release) return release;
  }
  return null;
}

function take(name) {
  return new Promise((resolve) => {
    const hold = (lock) => {
      if (!lock) {
        resolve(null);
        return undefined;
      }
      return new Promise((release) => resolve(release));
    };
    // A page on its way out is refused; it follows nothing any more.
    navigator.locks.request(name, { ifAvailable: true }, hold).catch(() => resolve(null));
  });
}
