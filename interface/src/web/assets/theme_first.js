// Before anything is drawn, so that nobody who chose a theme sees the other one first. Not a module: these wait for the document.
try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem('tidemark.theme')) ?? 'system';
} catch {
  // A browser that refuses storage shows the theme of its system.
}
