// Light, dark, or as the system is.

import { read, write } from './storage.js';

const KEY = 'tidemark.theme';
const THEMES = ['system', 'light', 'dark'];

export const currentTheme = () => (THEMES.includes(read(KEY)) ? read(KEY) : 'system');

export function setTheme(theme) {
  write(KEY, theme);
  showTheme();
}

export function showTheme() {
  document.documentElement.dataset.theme = currentTheme();
}
